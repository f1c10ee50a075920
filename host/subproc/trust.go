package subproc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/digest"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

// TrustedDir is a plugin directory that the user trusts: its path without symbolic links,
// and its owner when it was added. If the path or the owner changes, it is no longer
// trusted.
type TrustedDir struct {
	Path string `json:"path"`
	UID  uint32 `json:"uid"`
}

// Trust is the user's list of trusted plugin directories, a file that only this user can
// write. Changes are serialized, also between processes.
type Trust struct{ File string }

// List returns the trusted directories in the order in which they were added.
// It fails if another user could have written the list.
func (t Trust) List() ([]TrustedDir, error) {
	err := digest.CheckPrivate(t.File, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of trusted plugin directories: %w", err)
	}
	data, err := os.ReadFile(t.File)
	if err != nil {
		return nil, fmt.Errorf("read the list of trusted plugin directories: %w", err)
	}
	var dirs []TrustedDir
	if err := json.Unmarshal(data, &dirs); err != nil {
		return nil, fmt.Errorf("read the list of trusted plugin directories %s: %w", t.File, err)
	}
	return dirs, nil
}

// Add trusts a directory. It refuses a directory that all users can write to.
func (t Trust) Add(dir string) (TrustedDir, error) {
	d, err := identify(dir)
	if err != nil {
		return TrustedDir{}, err
	}
	if isOpen(d.Path) {
		return TrustedDir{}, fmt.Errorf("%s: every user can write to it (chmod o-w)", d.Path)
	}
	return d, t.change(func(dirs []TrustedDir) []TrustedDir {
		dirs = slices.DeleteFunc(dirs, func(have TrustedDir) bool { return have.Path == d.Path })
		return append(dirs, d)
	})
}

// Remove removes a directory, which need not exist, from the list. The error is
// fs.ErrNotExist if the directory was not trusted.
func (t Trust) Remove(dir string) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if d, err := identify(dir); err == nil {
		path = d.Path
	}
	found := false
	err = t.change(func(dirs []TrustedDir) []TrustedDir {
		n := len(dirs)
		dirs = slices.DeleteFunc(dirs, func(have TrustedDir) bool { return have.Path == path })
		found = len(dirs) < n
		return dirs
	})
	if err == nil && !found {
		err = fmt.Errorf("%s is not trusted: %w", path, fs.ErrNotExist)
	}
	return err
}

func (t Trust) change(edit func([]TrustedDir) []TrustedDir) error {
	if t.File == "" {
		return errors.New("no home directory to keep the list of trusted plugin directories in")
	}
	if err := os.MkdirAll(filepath.Dir(t.File), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(t.File+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := filelock.Lock(lock); err != nil {
		return err
	}
	dirs, err := t.List()
	if err != nil {
		return err
	}
	return writeJSON(t.File, append([]TrustedDir{}, edit(dirs)...), 0o600)
}

// has reports whether a directory, in its current state, is trusted.
func (t Trust) has(dir string) (bool, error) {
	if t.File == "" {
		return false, nil
	}
	d, err := identify(dir)
	if err != nil {
		return false, err
	}
	dirs, err := t.List()
	return slices.Contains(dirs, d), err
}

func identify(dir string) (TrustedDir, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return TrustedDir{}, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return TrustedDir{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return TrustedDir{}, err
	}
	if !info.IsDir() {
		return TrustedDir{}, fmt.Errorf("%s is not a directory", path)
	}
	return TrustedDir{Path: path, UID: digest.Owner(info)}, nil
}
