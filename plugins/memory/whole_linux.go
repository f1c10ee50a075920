package memory

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// writeWhole writes a file atomically. If the process is killed, nothing is left,
// since the file has no name until it is complete; on file systems without
// unnamed files, a temporary file may be left.
func writeWhole(root *os.Root, name string, write func(io.Writer) error) error {
	dir, err := root.Open(path.Dir(filepath.ToSlash(name)))
	if err != nil {
		return err
	}
	defer dir.Close()
	in := int(dir.Fd()) //nolint:gosec // a descriptor is an int
	unnamed, err := unix.Openat(in, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return atomicfile.WriteIn(root, name, 0o600, write)
	}
	f := os.NewFile(uintptr(unnamed), name)
	defer f.Close()
	// Check that the file can be linked before it is written.
	temporary := "." + rand.Text() + ".tea-tmp"
	link := func() error {
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", unnamed), in, temporary, unix.AT_SYMLINK_FOLLOW)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/self/fd/%d", unnamed)); err != nil {
		return atomicfile.WriteIn(root, name, 0o600, write)
	}
	if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := write(f); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), link()); err != nil {
		return err
	}
	temporary = path.Join(path.Dir(filepath.ToSlash(name)), temporary)
	if err := root.Rename(temporary, name); err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	return dir.Sync()
}
