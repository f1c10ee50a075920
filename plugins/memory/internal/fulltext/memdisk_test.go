package fulltext

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
)

// memDisk is a directory in memory that records what a crash would leave. step
// is called before each operation that changes something; an error from it
// makes the operation fail, and a write fail half way.
type memDisk struct {
	mu      sync.Mutex
	files   map[string]*memFile
	durable map[string]*memFile // the names as of the last sync
	step    func(d *memDisk) error
	pause   func() // set by pauseAtSync
}

type memFile struct {
	data   []byte
	synced int
}

func newMemDisk() *memDisk {
	return &memDisk{files: map[string]*memFile{}, durable: map[string]*memFile{}}
}

// pauseAtSync sets what is called before a file is synced, with nothing locked.
func (d *memDisk) pauseAtSync(pause func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pause = pause
}

func (d *memDisk) before() error {
	if d.step == nil {
		return nil
	}
	return d.step(d)
}

// crashes returns what may be left if everything stops now: all of it (the
// process was killed), or only what was synced (the power went), with the old
// names or with the new ones.
func (d *memDisk) crashes() []*memDisk {
	leave := func(names map[string]*memFile, all bool) *memDisk {
		out := newMemDisk()
		for name, f := range names {
			data := f.data
			if !all {
				data = data[:f.synced]
			}
			data = bytes.Clone(data)
			out.files[name] = &memFile{data: data, synced: len(data)}
		}
		out.durable = maps.Clone(out.files)
		return out
	}
	return []*memDisk{leave(d.files, true), leave(d.durable, false), leave(d.files, false)}
}

func (d *memDisk) clone() *memDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.crashes()[0]
}

func (d *memDisk) create(name string) (fileWriter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.before(); err != nil {
		return nil, err
	}
	f := &memFile{}
	d.files[name] = f
	return &memWriter{d, f}, nil
}

type memWriter struct {
	disk *memDisk
	file *memFile
}

func (w *memWriter) Write(p []byte) (int, error) {
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	half := len(p) / 2
	w.file.data = append(w.file.data, p[:half]...)
	if err := w.disk.before(); err != nil {
		return half, err
	}
	w.file.data = append(w.file.data, p[half:]...)
	return len(p), nil
}

func (w *memWriter) Sync() error {
	w.disk.mu.Lock()
	pause := w.disk.pause
	w.disk.mu.Unlock()
	if pause != nil {
		pause()
	}
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	if err := w.disk.before(); err != nil {
		return err
	}
	w.file.synced = len(w.file.data)
	return nil
}

func (w *memWriter) Close() error { return nil }

type memReader struct{ *bytes.Reader }

func (memReader) Close() error { return nil }

func (d *memDisk) open(name string) (fileReader, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.files[name]
	if !ok {
		return nil, 0, fs.ErrNotExist
	}
	return memReader{bytes.NewReader(f.data)}, int64(len(f.data)), nil
}

func (d *memDisk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.before(); err != nil {
		return err
	}
	f, ok := d.files[from]
	if !ok {
		return fs.ErrNotExist
	}
	d.files[to] = f
	delete(d.files, from)
	return nil
}

func (d *memDisk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.before(); err != nil {
		return err
	}
	if _, ok := d.files[name]; !ok {
		return fs.ErrNotExist
	}
	delete(d.files, name)
	return nil
}

func (d *memDisk) sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.before(); err != nil {
		return err
	}
	d.durable = maps.Clone(d.files)
	return nil
}

func (d *memDisk) list() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.files)), nil
}

var errDisk = errors.New("the disk is full")
