package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func wantFile(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != content || info.Mode() != mode {
		t.Errorf("%q with mode %v, want %q with %v", got, info.Mode(), content, mode)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if atomicfile.IsTemporary(e.Name()) {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := atomicfile.Write(path, 0o600, text("one")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "one", 0o600)
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, 0o600, text("two")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "two", 0o666)

	failure := errors.New("half")
	err := atomicfile.Write(path, 0o600, func(w io.Writer) error { return errors.Join(text("thr")(w), failure) })
	if !errors.Is(err, failure) {
		t.Errorf("got %v, want the writer's error", err)
	}
	wantFile(t, path, "two", 0o666)
}

// leave writes a file as a process that is killed meanwhile, and returns the name
// of the temporary file.
func leave(path string) (temporary string) {
	defer func() { _ = recover() }()
	_ = atomicfile.Write(path, 0o600, func(w io.Writer) error {
		temporary = w.(*os.File).Name()
		panic("killed")
	})
	return temporary
}

func TestWriteRemovesTheFileOfAKilledWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	temporary := leave(path)
	// It can belong to another process that still writes.
	if err := atomicfile.Write(path, 0o600, text("one")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(temporary); err != nil {
		t.Fatalf("removed while it can be in use: %v", err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(temporary, old, old); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, 0o600, text("two")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "two", 0o600)
}

func TestWriteRemovesTheFilesOfSeveralKilledWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	left := []string{leave(path), leave(path), leave(path)}
	old := time.Now().Add(-time.Hour)
	for _, name := range left {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.Write(path, 0o600, text("one")); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v; want one file", entries, err)
	}
}

func TestWriteOfALongName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
	if err := atomicfile.Write(path, 0o600, text("one")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "one", 0o600)
}

func TestWriteReplacesALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(target, []byte("target"), 0o600), os.Symlink("target", link)); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(link, 0o600, text("new")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, target, "target", 0o600)
	wantFile(t, link, "new", 0o600)
}

func TestWriteFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "none", "file"), filepath.Join(dir, "sub")} {
		if err := atomicfile.Write(path, 0o600, text("x")); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func ExampleWrite() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "state.json")
	err = atomicfile.Write(path, 0o600, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, `{"done": true}`)
		return err
	})
	if err != nil {
		panic(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(content))
	// Output: {"done": true}
}
