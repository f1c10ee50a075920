package confine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Root is a directory that paths cannot lead out of, neither by their text nor by
// symbolic links. It is safe for concurrent use. The caller closes it.
type Root struct {
	dir  string
	root *os.Root
}

// errNotDirectory is the error for a root that is not a directory.
var errNotDirectory = errors.New("it is not a directory")

// Open opens the directory dir. A directory that does not exist is a not_found
// error. The caller closes the Root.
func Open(dir string) (*Root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, tea.Errorf(tea.InternalError, "find the file root %q: %w", dir, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		if info, statErr := os.Stat(abs); statErr == nil && !info.IsDir() {
			err = errNotDirectory // os.OpenRoot returns an unnamed error
		}
		return nil, failure("open the file root", dir, err)
	}
	return &Root{dir: abs, root: root}, nil
}

// Close releases the directory.
func (r *Root) Close() error { return r.root.Close() }

// Dir returns the absolute path of the directory.
func (r *Root) Dir() string { return r.dir }

// ReadFile reads a regular file of at most limit bytes.
func (r *Root) ReadFile(given string, limit int64) ([]byte, error) {
	name, err := Clean(given)
	if err != nil {
		return nil, err
	}
	f, size, err := r.openRegular(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, r.failure("read", given, err)
	}
	defer f.Close()
	if size > limit {
		return nil, tooLarge(given, size, limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, r.failure("read", given, err)
	}
	if int64(len(data)) > limit {
		return nil, tooLarge(given, int64(len(data)), limit) // it grew, or reports no size, as files in /proc
	}
	return data, nil
}

func tooLarge(given string, size, limit int64) error {
	return tea.Errorf(tea.ResourceExhausted, "%s has %d bytes or more, the limit is %d (settings.file.max_bytes)", given, size, limit)
}

// openRegular opens a regular file. It refuses anything else: a pipe or a
// device could block or never end.
func (r *Root) openRegular(name string, flag int, perm fs.FileMode) (*os.File, int64, error) {
	f, err := r.root.OpenFile(name, flag|nonBlock, perm)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// ReadRegular reads a file that is not confined to a root, up to limit+1 bytes: the last
// byte shows that the file is too long. It refuses a pipe, a device or a directory, whose
// reading could block or never end.
func ReadRegular(file string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: file, Err: errors.New(kindOf(info.Mode()))}
	}
	return io.ReadAll(io.LimitReader(f, limit+1))
}

func notRegular(mode fs.FileMode) error {
	return tea.Errorf(tea.ValidationError, "%s", kindOf(mode))
}

func kindOf(mode fs.FileMode) string {
	if mode.IsDir() {
		return "it is a directory"
	}
	return "it is not a regular file"
}

// Stat describes a file. It follows symbolic links that stay inside of the
// root.
func (r *Root) Stat(given string) (fs.FileInfo, error) {
	name, err := Clean(given)
	if err != nil {
		return nil, err
	}
	info, err := r.root.Stat(name)
	if err != nil {
		return nil, r.failure("look at", given, err)
	}
	return info, nil
}

// Remove deletes a file, a symbolic link or an empty directory.
func (r *Root) Remove(given string) error {
	name, err := Clean(given)
	if err != nil {
		return err
	}
	if name == "." {
		return tea.Errorf(tea.PermissionDenied, "the root itself cannot be deleted")
	}
	if err := r.root.Remove(name); err != nil {
		return r.failure("delete", given, err)
	}
	return nil
}

// failure is [failure] with the absolute path of a missing file.
func (r *Root) failure(verb, given string, err error) error {
	e := failure(verb, given, err)
	if errors.Is(err, fs.ErrNotExist) {
		e.Message += ": " + filepath.Join(r.dir, filepath.FromSlash(given))
	}
	return e
}

// failure converts an error of the file system to an action error.
func failure(verb, given string, err error) *tea.Error {
	var typed *tea.Error
	if errors.As(err, &typed) {
		wrapped := tea.Errorf(typed.Type, "%s %s: %s", verb, given, typed.Message)
		wrapped.Details = typed.Details
		return wrapped
	}
	kind := tea.InternalError
	var errno syscall.Errno
	switch {
	case errors.Is(err, errNotDirectory):
		kind = tea.ValidationError
	case errors.Is(err, fs.ErrNotExist):
		kind, err = tea.NotFound, errors.New("there is no such file or directory")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		kind, err = tea.PermissionDenied, cause(err)
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTEMPTY),
		errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO):
		kind, err = tea.ValidationError, cause(err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		kind, err = tea.ResourceExhausted, cause(err)
	case errors.As(err, &errno), errors.Is(err, fs.ErrClosed), errors.Is(err, io.ErrShortWrite):
		err = cause(err)
	default:
		// os.Root returns an unnamed error for a path that leads out.
		kind, err = tea.PermissionDenied, fmt.Errorf("it leads out of the root: %w", cause(err))
	}
	e := tea.Errorf(kind, "%s %s: %w", verb, given, err)
	e.Details = map[string]any{"path": given}
	return e
}

// cause removes the operation and the path, which the message already has.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}
