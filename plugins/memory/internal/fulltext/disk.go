package fulltext

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// disk is the index's directory. In tests, a step can fail, and the directory be
// copied between two steps.
type disk interface {
	create(name string) (fileWriter, error)
	// open opens a file and returns its size.
	open(name string) (fileReader, int64, error)
	rename(from, to string) error
	remove(name string) error
	// sync makes renames durable.
	sync() error
	list() ([]string, error)
}

// fileWriter is a file that is being written.
type fileWriter interface {
	io.Writer
	io.Closer
	Sync() error
}

// osDisk is a directory.
type osDisk struct{ dir string }

func (d osDisk) create(name string) (fileWriter, error) {
	return os.OpenFile(filepath.Join(d.dir, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

func (d osDisk) open(name string) (fileReader, int64, error) {
	file, err := os.Open(filepath.Join(d.dir, name))
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		file.Close()
		return nil, 0, corrupt("%s is not a file", name)
	}
	return file, info.Size(), nil
}

func (d osDisk) rename(from, to string) error {
	return os.Rename(filepath.Join(d.dir, from), filepath.Join(d.dir, to))
}

func (d osDisk) remove(name string) error {
	return os.Remove(filepath.Join(d.dir, name))
}

func (d osDisk) sync() error {
	dir, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = dir.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		return nil // not every system can sync a directory
	}
	return err
}

func (d osDisk) list() ([]string, error) {
	entries, err := os.ReadDir(d.dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// readOnly is a directory that stays as it is. The index writes nothing to it.
type readOnly struct{ osDisk }

func (readOnly) remove(string) error { return nil }

func (readOnly) sync() error { return nil }

// list returns nothing: what an interrupted flush has left stays.
func (readOnly) list() ([]string, error) { return nil, nil }

// writeFile creates a file atomically.
func writeFile(d disk, name string, write func(io.Writer) error) error {
	temp := name + ".tmp"
	file, err := d.create(temp)
	if err != nil {
		return err
	}
	if err = write(file); err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = d.rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(d.remove(temp)))
	}
	return d.sync()
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
