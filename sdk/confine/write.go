package confine

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

// WriteFile puts data in a file so that a reader, also after a crash, finds
// the old content or the new one and never a part. An existing file keeps
// its permissions; a symbolic link is replaced by the file. With createDirs,
// missing directories are made.
func (r *Root) WriteFile(given string, data []byte, createDirs bool) error {
	name, err := r.target(given, createDirs)
	if err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	switch info, err := r.root.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return failure("write", given, err)
	case info.Mode().IsRegular():
		perm = info.Mode().Perm()
	case info.Mode()&fs.ModeSymlink == 0:
		return failure("write", given, notRegular(info.Mode()))
	}
	temporary := path.Join(path.Dir(name), "."+rand.Text()+temporarySuffix)
	if err := r.writeNew(temporary, data, perm); err != nil {
		return failure("write", given, err)
	}
	if err := r.root.Rename(temporary, name); err != nil {
		return failure("write", given, errors.Join(err, r.root.Remove(temporary)))
	}
	if err := r.syncDir(path.Dir(name)); err != nil {
		return failure("write", given, err)
	}
	return nil
}

// temporarySuffix ends the name of a file that becomes another one when it is
// whole; it begins with a dot.
const temporarySuffix = ".tea-tmp"

// isTemporary tells such a name.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, temporarySuffix)
}

// writeNew makes a file that is safely on disk when it returns; where that
// fails, nothing stays behind.
func (r *Root) writeNew(name string, data []byte, perm fs.FileMode) (err error) {
	f, err := r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.root.Remove(name))
		}
	}()
	if perm != 0o644 { // the file that is replaced may be closed to others, or open wider than the umask
		err = f.Chmod(perm)
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// AppendFile adds data at the end of a file, which is made where it is
// missing, and waits until it is on disk. Where the disk is full the file
// gets its old length back.
func (r *Root) AppendFile(given string, data []byte, createDirs bool) error {
	name, err := r.target(given, createDirs)
	if err != nil {
		return err
	}
	f, size, err := r.openRegular(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return failure("append to", given, err)
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
		return failure("append to", given, err)
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
			return "", failure("make the directory of", given, err)
		}
	}
	return name, nil
}

func (r *Root) syncDir(name string) error {
	dir, err := r.root.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
