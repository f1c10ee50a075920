package memory

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAnInterruptedBackupLeftATemporaryFile looks into the folder while an archive is
// written: what is there then stays if the process is killed.
func TestAnInterruptedBackupLeftATemporaryFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Skip("this file system has no files without a name")
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	if err := root.Mkdir("sub", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.teamem", "a.teamem", "sub/b.teamem"} {
		failed := errors.New("failed")
		for _, want := range []error{failed, nil} {
			err := writeWhole(root, name, func(w io.Writer) error {
				if found, _ := filepath.Glob(filepath.Join(dir, filepath.Dir(name), ".*tea-tmp")); len(found) > 0 {
					t.Errorf("%s: there is %v", name, found)
				}
				_, err := io.WriteString(w, name)
				return errors.Join(err, want)
			})
			if !errors.Is(err, want) {
				t.Error(err)
			}
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		info, failed := os.Stat(filepath.Join(dir, name))
		if err = errors.Join(err, failed); err != nil || string(content) != name || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has %q, %v, %v", name, content, info.Mode(), err)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*")); len(found) != 2 {
		t.Errorf("the folder has %v", found)
	}
}
