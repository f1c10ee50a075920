package bundles

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func lock() *Lock {
	return &Lock{Plugins: []Pinned{
		{Name: "text", Version: "1.2.3", Platforms: map[string]Digests{
			"linux/amd64": {lockedBinary: strings.Repeat("a", 64), "lib/x.py": strings.Repeat("b", 64)},
			"linux/arm64": {lockedBinary: strings.Repeat("c", 64)},
		}},
		{Name: "mail", Version: "2.0.0", Platforms: map[string]Digests{"any": {lockedBinary: strings.Repeat("d", 64)}}},
	}}
}

func written(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), LockName)
	if err := lock().Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLockRoundTrip(t *testing.T) {
	t.Parallel()
	got, err := ReadLock(written(t))
	if err != nil {
		t.Fatal(err)
	}
	want := lock()
	want.Plugins[0], want.Plugins[1] = want.Plugins[1], want.Plugins[0] // sorted
	if diff := cmp.Diff(want.Plugins, got.Plugins, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if _, err := ReadLock(filepath.Join(t.TempDir(), LockName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

func TestEveryFlippedByteOfALockIsNoticed(t *testing.T) {
	t.Parallel()
	path := written(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var damaged *LockError
		if l, err := ReadLock(path); !errors.As(err, &damaged) {
			t.Errorf("%s: %v, %v; want a LockError", what, l, err)
		}
	}
	for i := range data {
		flipped := bytes.Clone(data)
		flipped[i] ^= 1 << (i % 8)
		try("a flipped bit of "+string(data[max(0, i-8):i+1]), flipped)
	}
	for n := range data {
		try("a part", data[:n])
		try("a part and zeros", append(data[:n:n], make([]byte, len(data)-n)...))
	}
	try("a further line", append(bytes.Clone(data), '\n'))
	try("CRLF", bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")))
	try("a newer format", bytes.Replace(data, []byte(`"format": 1`), []byte(`"format": 2`), 1))
}

func TestALockThatCannotBeReadIsNotAnAbsentLock(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"link without a target": func(path string) error { return os.Symlink("none", path) },
		"link to itself":        func(path string) error { return os.Symlink(LockName, path) },
		"directory":             func(path string) error { return os.Mkdir(path, 0o700) },
		"empty file":            func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"device":                func(path string) error { return os.Symlink(os.DevNull, path) },
	} {
		path := filepath.Join(t.TempDir(), LockName)
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		var damaged *LockError
		if l, err := ReadLock(path); !errors.As(err, &damaged) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v; want a LockError", name, l, err)
		}
	}
}

func TestLockCheck(t *testing.T) {
	t.Parallel()
	l, err := ReadLock(written(t))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{
		"/p/tea-plugin-text": strings.Repeat("a", 64), "/p/lib/x.py": strings.Repeat("b", 64), "/p/tea-plugin-mail": strings.Repeat("d", 64),
		"/q/tea-plugin-text": strings.Repeat("a", 64), "/q/lib/x.py": strings.Repeat("e", 64), "/r/tea-plugin-text": strings.Repeat("a", 64),
	}
	sum := func(path string) (string, error) {
		if s, ok := sums[path]; ok {
			return s, nil
		}
		return "", fs.ErrNotExist
	}
	tests := []struct{ name, binary, platform, want string }{
		{"text", "/p/tea-plugin-text", "linux/amd64", ""},
		{"mail", "/p/tea-plugin-mail", "plan9/mips", ""},
		{"text", "/p/tea-plugin-text", "linux/arm64", "the SHA-256 of /p/tea-plugin-text is aaaaaaaaaaaa..., not cccccccccccc... as for text 1.2.3"},
		{"text", "/p/tea-plugin-text", "linux/riscv64", "it has text 1.2.3 for linux/amd64, linux/arm64, not for linux/riscv64"},
		{"text", "/q/tea-plugin-text", "linux/amd64", "the SHA-256 of /q/lib/x.py is eeee"},
		{"text", "/r/tea-plugin-text", "linux/amd64", "/r/lib/x.py is missing"},
		{"llm", "/p/tea-plugin-llm", "linux/amd64", "the plugin llm is not in it; `tea plugin lock` allows the plugins that are installed now"},
	}
	for _, tt := range tests {
		err := l.Check(tt.name, tt.binary, tt.platform, sum)
		var refusal *Refusal
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s for %s: %v", tt.binary, tt.platform, err)
		case tt.want != "" && (!errors.As(err, &refusal) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s for %s: %v; want a Refusal with %q", tt.binary, tt.platform, err, tt.want)
		}
	}
}
