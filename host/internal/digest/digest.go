package digest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// Of returns the SHA-256 of data in hexadecimal.
func Of(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// File returns the SHA-256 of a regular file in hexadecimal.
func File(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// State returns a text that changes with every change of a file. It includes the
// status change time, because programs such as `cp -p` and tar set the
// modification time.
func State(path string) string {
	state, _ := stateAt(path)
	return state
}

// settled is the age from which a file's change time reveals every later change.
// Two changes within one tick of the kernel's clock have the same time.
const settled = 2 * time.Second

// Cache caches the digests of files by their state. It trusts only entries that no
// other user can have written. The zero value caches nothing. It is safe for
// concurrent use, also by several processes.
type Cache struct{ Dir string }

// Of returns the SHA-256 of a file in hexadecimal. It reads the file only if
// its state has changed.
func (c Cache) Of(path string) (string, error) {
	if c.Dir == "" {
		return File(path)
	}
	state, changed := stateAt(path)
	entry := filepath.Join(c.Dir, Of([]byte(path))[:32])
	if r, err := c.recall(entry); err == nil && r.Path == path && r.State == state {
		return r.SHA256, nil
	}
	sum, err := File(path)
	if err != nil {
		return "", err
	}
	if time.Since(changed) > settled && State(path) == state {
		c.remember(entry, remembered{Path: path, State: state, SHA256: sum})
	}
	return sum, nil
}

type remembered struct {
	Path   string `json:"path"`
	State  string `json:"state"`
	SHA256 string `json:"sha256"`
}

func (c Cache) recall(entry string) (r remembered, err error) {
	if err := CheckPrivate(c.Dir, fs.ModeDir); err != nil {
		return r, err
	}
	if err := CheckPrivate(entry, 0); err != nil {
		return r, err
	}
	data, err := os.ReadFile(entry)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(data, &r)
}

// maxEntries bounds the cache: each version of a plugin has different paths.
const maxEntries = 512

// remember stores an entry. It ignores errors: the file is then read again.
func (c Cache) remember(entry string, r remembered) {
	data, err := json.Marshal(r)
	if err != nil || os.MkdirAll(c.Dir, 0o700) != nil || CheckPrivate(c.Dir, fs.ModeDir) != nil {
		return
	}
	if entries, err := os.ReadDir(c.Dir); err == nil && len(entries) > maxEntries {
		for _, e := range entries {
			os.Remove(filepath.Join(c.Dir, e.Name()))
		}
	}
	_ = atomicfile.Write(entry, 0o600, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// CheckPrivate checks that a file or directory belongs to this user (or root)
// and that other users cannot write to it.
func CheckPrivate(path string, kind fs.FileMode) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case info.Mode().Type() != kind && kind.IsDir():
		return fmt.Errorf("%s is not a directory", path)
	case info.Mode().Type() != kind:
		return fmt.Errorf("%s is not a regular file", path)
	case OthersCanWrite(info, 0o022):
		return fmt.Errorf("other users can write to %s", path)
	case !IsOurs(info):
		return fmt.Errorf("%s belongs to another user", path)
	}
	return nil
}

// Canonical returns the only encoding of a value in a file that is verified byte
// by byte: indented JSON and a line feed.
func Canonical(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

// ParseCanonical decodes the output of [Canonical], and refuses any other encoding
// of the same value.
func ParseCanonical(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	again, err := Canonical(into)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, data) {
		return fmt.Errorf("it was changed after it was written")
	}
	return nil
}
