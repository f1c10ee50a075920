package fulltext

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// disk is what the index does with its directory. Tests let a step fail or
// copy the directory between two steps.
type disk interface {
	// create makes an empty file.
	create(name string) (fileWriter, error)
	// open opens a file and tells its size.
	open(name string) (fileReader, int64, error)
	rename(from, to string) error
	remove(name string) error
	// sync makes renames last.
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
		return nil, 0, corrupt("%s is no file", name)
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

// overlay is a directory that is only read. What the index writes stays in
// memory.
type overlay struct {
	osDisk

	mu    sync.Mutex
	files map[string]*memoryFile // nil for one that was removed
}

// memoryFile is a file of an overlay. It is not written any more once it is read.
type memoryFile struct{ bytes.Buffer }

func (f *memoryFile) Sync() error  { return nil }
func (f *memoryFile) Close() error { return nil }

func (o *overlay) create(name string) (fileWriter, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	file := &memoryFile{}
	o.files[name] = file
	return file, nil
}

func (o *overlay) open(name string) (fileReader, int64, error) {
	o.mu.Lock()
	file, ours := o.files[name]
	o.mu.Unlock()
	switch {
	case !ours:
		return o.osDisk.open(name)
	case file == nil:
		return nil, 0, fs.ErrNotExist
	}
	return struct {
		io.ReaderAt
		io.Closer
	}{bytes.NewReader(file.Bytes()), file}, int64(file.Len()), nil
}

func (o *overlay) rename(from, to string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.files[to] = o.files[from] // the index renames what it has created
	delete(o.files, from)
	return nil
}

func (o *overlay) remove(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.files[name] = nil
	return nil
}

func (o *overlay) sync() error { return nil }

// list lists nothing: what an interrupted flush has left stays.
func (o *overlay) list() ([]string, error) { return nil, nil }

// writeFile makes a file that is there whole or not at all.
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
