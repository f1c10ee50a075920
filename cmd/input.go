package teacmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/value"
)

// mostInput is the maximum size of an input in bytes.
const mostInput = 64 << 20

// readInput reads JSON, @file or - for stdin; it must be an object.
func (a *app) readInput(arg string) (map[string]any, error) {
	if arg == "" {
		return nil, nil
	}
	return a.readObject("--input", arg)
}

func (a *app) readObject(flag, arg string) (map[string]any, error) {
	data, err := a.readArgument(arg)
	if err != nil {
		return nil, usageErrorf("%s: %w", flag, err)
	}
	v, err := decode(data)
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return nil, usageErrorf("%s: empty; expected a JSON object", flag)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, usageErrorf("%s: not JSON: unexpected end of input", flag)
	case errors.Is(err, errEncoding):
		return nil, usageErrorf("%s: %w", flag, err)
	case err != nil && (isFile(arg) || filepath.Ext(arg) == ".json"):
		return nil, usageErrorf("%s: %q is not JSON; to read a file, write @%s", flag, arg, arg)
	case err != nil:
		return nil, usageErrorf("%s: not JSON: %w", flag, err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, usageErrorf("%s: expected a JSON object, got %s", flag, value.TypeName(v))
	}
	if key := value.DuplicateKey(data, v); key != "" {
		return nil, usageErrorf("%s: duplicate key %q", flag, key)
	}
	return object, nil
}

// errEncoding reports a text that is not UTF-8.
var errEncoding = errors.New("not UTF-8; convert it, for example with: iconv -f latin1 -t utf-8")

// decode is [value.Decode], which replaces the bytes that are not UTF-8, for text that
// a user writes.
func decode(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, errEncoding
	}
	return value.Decode(data)
}

func (a *app) readArgument(arg string) ([]byte, error) {
	file, isFile := strings.CutPrefix(arg, "@")
	switch {
	case arg == "-":
		return readBounded(a.stdin)
	case isFile:
		f, err := os.Open(file)
		if err != nil {
			return nil, unreadable(file, err)
		}
		defer f.Close()
		return readBounded(f)
	}
	return []byte(arg), nil
}

// unreadable returns an error of reading a file, with its absolute path.
func unreadable(file string, err error) error {
	if inner := (*os.PathError)(nil); errors.As(err, &inner) {
		err = inner.Err
	}
	return fmt.Errorf("cannot read %s: %w", absolute(file), err)
}

func absolute(file string) string {
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
}

// resolved returns an absolute path, without symbolic links if it exists.
func resolved(path string) string {
	path = absolute(path)
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostInput+1))
	if err == nil && len(data) > mostInput {
		err = fmt.Errorf("more than %d bytes", mostInput)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), err // a byte order mark
}

// readSecrets collects secrets from systemd's credentials, the environment and
// the flag, lowest precedence first.
func (a *app) readSecrets(arg, prefix string) (map[string]any, error) {
	secrets := map[string]any{}
	if dir := a.getenv("CREDENTIALS_DIRECTORY"); dir != "" {
		if err := readCredentials(dir, secrets); err != nil {
			return nil, err
		}
	}
	if prefix != "" {
		for _, entry := range os.Environ() {
			name, text, _ := strings.Cut(entry, "=")
			// Workflows can use the name as written or in lower case.
			if name, ok := strings.CutPrefix(name, prefix); ok && name != "" && text != "" {
				secrets[name], secrets[strings.ToLower(name)] = text, text
			}
		}
	}
	if arg != "" {
		given, err := a.readObject("--secrets", arg)
		if err != nil {
			return nil, err
		}
		for name, v := range given {
			secrets[name] = v
		}
	}
	return secrets, nil
}

// readCredentials adds each file of systemd's credentials directory as a
// secret.
func readCredentials(dir string, secrets map[string]any) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read credentials: %w", err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("read credentials: %w", err)
		}
		secrets[entry.Name()] = strings.TrimSuffix(string(data), "\n")
	}
	return nil
}
