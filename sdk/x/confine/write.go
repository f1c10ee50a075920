package confine

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// WriteFile writes data to a file. A reader, also after a crash, finds the
// complete old or the complete new content. An existing file keeps its
// permissions. A symbolic link is replaced by the file; one that leads out of the root
// is refused. If createDirs is true, missing directories are created.
func (r *Root) WriteFile(given string, data []byte, createDirs bool) error {
	name, err := r.target(given, createDirs)
	if err != nil {
		return err
	}
	switch info, err := r.root.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return r.failure("write", given, err)
	case info.Mode()&fs.ModeSymlink != 0:
		if _, err := r.root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return r.failure("write", given, err)
		}
	case !info.Mode().IsRegular():
		return r.failure("write", given, notRegular(info.Mode()))
	}
	err = atomicfile.WriteIn(r.root, name, 0o644, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return r.failure("write", given, err)
	}
	return nil
}

// AppendFile appends data to a file, which it creates if necessary, and waits until the
// data is on disk. If the disk is full, it restores the file's length.
func (r *Root) AppendFile(given string, data []byte, createDirs bool) error {
	name, err := r.target(given, createDirs)
	if err != nil {
		return err
	}
	f, size, err := r.openRegular(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return r.failure("append to", given, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(size))
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return r.failure("append to", given, err)
	}
	return nil
}

// target checks the path of a file to be written.
func (r *Root) target(given string, createDirs bool) (string, error) {
	name, err := Clean(given)
	if err != nil {
		return "", err
	}
	if name == "." {
		return "", tea.Errorf(tea.ValidationError, "path %q is a directory", given)
	}
	if dir := path.Dir(name); createDirs && dir != "." {
		if err := r.root.MkdirAll(dir, 0o755); err != nil {
			return "", r.failure("make the directory of", given, err)
		}
	}
	return name, nil
}
