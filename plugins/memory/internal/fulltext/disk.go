package fulltext

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// disk is the index's directory. Tests replace it to make steps fail.
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

type fileWriter interface {
	io.Writer
	io.Closer
	Sync() error
}

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

// readOnly is a directory that the index does not change.
type readOnly struct{ disk }

func (readOnly) remove(string) error { return nil }

func (readOnly) sync() error { return nil }

// list returns nothing, so that sweep keeps the files of an interrupted flush.
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

// Folder stores the files of an index outside of a directory. Write is atomic and
// durable. Read returns [fs.ErrNotExist] for a file that does not exist.
type Folder interface {
	Read(name string) ([]byte, error)
	Write(name string, data []byte) error
	Remove(name string) error
	List() ([]string, error)
}

// folderDisk implements disk in a Folder. A file is written when it is renamed.
type folderDisk struct {
	folder  Folder
	mu      sync.Mutex
	writing map[string]*bytes.Buffer // // not yet renamed
}

type folderWriter struct{ *bytes.Buffer }

func (folderWriter) Close() error { return nil }
func (folderWriter) Sync() error  { return nil }

type folderReader struct{ *bytes.Reader }

func (folderReader) Close() error { return nil }

func (d *folderDisk) create(name string) (fileWriter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writing[name] = &bytes.Buffer{}
	return folderWriter{d.writing[name]}, nil
}

func (d *folderDisk) open(name string) (fileReader, int64, error) {
	data, err := d.folder.Read(name)
	return folderReader{bytes.NewReader(data)}, int64(len(data)), err
}

func (d *folderDisk) rename(from, to string) error {
	d.mu.Lock()
	data := d.writing[from]
	delete(d.writing, from)
	d.mu.Unlock()
	if data == nil {
		return fmt.Errorf("rename %s: %w", from, fs.ErrNotExist)
	}
	return d.folder.Write(to, data.Bytes())
}

func (d *folderDisk) remove(name string) error {
	d.mu.Lock()
	delete(d.writing, name)
	d.mu.Unlock()
	return d.folder.Remove(name)
}

func (d *folderDisk) sync() error { return nil }

func (d *folderDisk) list() ([]string, error) { return d.folder.List() }
