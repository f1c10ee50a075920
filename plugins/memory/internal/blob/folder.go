package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	dirMode  = 0o700
	fileMode = 0o600
	// temporary begins the name of an unfinished file. A file that a crash left is
	// removed before the next write.
	temporary = ".writing-"
)

// Folder stores blobs as files below one directory, which names and symbolic
// links cannot leave. It is safe for concurrent use.
//
// Opening and reading changes nothing. After its first Put or Move, a Folder must be the only writer of the directory.
type Folder struct {
	dir string

	mu      sync.Mutex
	writing bool            // the folder exists, and the files that a crash left were removed
	synced  map[string]bool // directories that are durable

	opening sync.Mutex
	opened  *os.Root // nil until the folder is used, or if it is closed
	closed  bool
}

var _ store.BlobStorage = (*Folder)(nil)

// Open returns the storage of a folder, which the first write creates. The caller
// closes it.
func Open(dir string) (*Folder, error) {
	f := &Folder{dir: dir, synced: map[string]bool{}}
	if _, err := f.root(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, store.SystemError(fmt.Errorf("open the folder of blobs: %w", err))
	}
	return f, nil
}

// root returns the directory; the error is fs.ErrNotExist before the first write.
func (f *Folder) root() (*os.Root, error) {
	f.opening.Lock()
	defer f.opening.Unlock()
	if f.closed {
		return nil, os.ErrClosed
	}
	var err error
	if f.opened == nil {
		f.opened, err = os.OpenRoot(f.dir)
	}
	return f.opened, err
}

// begin is called before a write. Its first call, rather than Open, removes the files that a crash left, because
// another process may be writing them at Open.
func (f *Folder) begin() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writing {
		return nil
	}
	_, err := f.root()
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(f.dir, dirMode); err == nil {
			err = atomicfile.SyncDir(filepath.Dir(f.dir))
		}
	}
	if err == nil {
		err = f.removeUnfinished()
	}
	f.writing = err == nil
	return err
}

// removeUnfinished removes half-written files, which are all in the top folder.
func (f *Folder) removeUnfinished() error {
	root, err := f.root()
	if err != nil {
		return fmt.Errorf("open the folder of blobs: %w", err)
	}
	names, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("list the folder of blobs: %w", err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name.Name(), temporary) {
			continue
		}
		if err := root.Remove(name.Name()); err != nil {
			return fmt.Errorf("remove an unfinished blob: %w", err)
		}
	}
	return nil
}

// Sweep removes the files that a crash left half written. It is safe during
// writes.
func (f *Folder) Sweep() error {
	if _, err := f.root(); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.begin()
}

// Close closes the folder.
func (f *Folder) Close() error {
	f.opening.Lock()
	defer f.opening.Unlock()
	if f.closed = true; f.opened == nil {
		return nil
	}
	return f.opened.Close()
}

// Put stores the data of r under name. It is durable on return.
func (f *Folder) Put(ctx context.Context, name string, r io.Reader) (store.BlobInfo, error) {
	if err := check(name); err != nil {
		return store.BlobInfo{}, err
	}
	if err := f.begin(); err != nil {
		return store.BlobInfo{}, refusal("write", name, err)
	}
	written := temporary + rand.Text()
	err := f.write(ctx, written, r)
	if err == nil {
		err = f.rename(written, name)
	}
	if err != nil {
		return store.BlobInfo{}, refusal("write", name, errors.Join(err, f.discard(written)))
	}
	return f.Stat(ctx, name)
}

// check refuses an invalid name and the name of an unfinished blob.
func check(name string) error {
	if strings.HasPrefix(name, temporary) {
		return tea.Errorf(tea.ValidationError, "%q is not a valid name of a blob: it begins with %s", name, temporary)
	}
	return store.CheckBlobName(name)
}

func (f *Folder) write(ctx context.Context, name string, r io.Reader) error {
	root, err := f.root()
	if err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, readerOf(ctx, r))
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func (f *Folder) discard(name string) error {
	root, err := f.root()
	if err == nil {
		err = root.Remove(name)
	}
	if missing(err) {
		return nil
	}
	return err
}

// rename renames a file and makes the name durable.
func (f *Folder) rename(from, to string) error {
	root, err := f.root()
	if err != nil {
		return err
	}
	dir := path.Dir(to)
	if err := f.makeDir(dir); err != nil {
		return err
	}
	err = root.Rename(from, to)
	if errors.Is(err, fs.ErrNotExist) && f.forget(dir) {
		// Another program removed the directory.
		if err = f.makeDir(dir); err == nil {
			err = root.Rename(from, to)
		}
	}
	if err != nil {
		return err
	}
	return f.sync(dir)
}

// forget removes a directory and its parents from f.synced, and reports whether it was there.
func (f *Folder) forget(dir string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.synced[dir]
	clear(f.synced)
	return known
}

// makeDir creates a directory with its parents and makes them durable.
func (f *Folder) makeDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.synced[dir] {
		return nil
	}
	root, err := f.root()
	if err != nil {
		return err
	}
	if err := root.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	for parent := dir; parent != "."; parent = path.Dir(parent) {
		if err := f.sync(path.Dir(parent)); err != nil {
			return err
		}
	}
	f.synced[dir] = true
	return nil
}

// sync makes the names in a directory durable. Windows cannot flush a directory.
func (f *Folder) sync(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	root, err := f.root()
	if err != nil {
		return err
	}
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Get opens a blob for reading.
func (f *Folder) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if _, err := f.Stat(ctx, name); err != nil {
		return nil, err // also for a directory, which os.Root.Open would accept
	}
	root, err := f.root()
	if err != nil {
		return nil, f.fault("read", name, err)
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, f.fault("read", name, err)
	}
	return file, nil
}

// Stat describes a blob.
func (f *Folder) Stat(_ context.Context, name string) (store.BlobInfo, error) {
	if err := check(name); err != nil {
		return store.BlobInfo{}, err
	}
	root, err := f.root()
	if err != nil {
		return store.BlobInfo{}, f.fault("stat", name, err)
	}
	info, err := root.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return store.BlobInfo{}, f.fault("stat", name, err)
	}
	return store.BlobInfo{Name: name, Size: info.Size(), Modified: info.ModTime().UTC()}, nil
}

// Delete removes a blob. A blob that does not exist is not an error.
func (f *Folder) Delete(_ context.Context, name string) error {
	if err := check(name); err != nil {
		return err
	}
	// A directory is not a blob, and a Put may need an empty one.
	if root, err := f.root(); err == nil {
		if info, err := root.Lstat(name); err == nil && info.IsDir() {
			return nil
		}
	}
	if err := f.discard(name); err != nil {
		return f.fault("remove", name, err)
	}
	return nil
}

// Move renames a blob.
func (f *Folder) Move(ctx context.Context, from, to string) error {
	if err := errors.Join(check(from), check(to)); err != nil {
		return err
	}
	if err := f.begin(); err != nil {
		return refusal("move", from, err)
	}
	if _, err := f.Stat(ctx, from); err != nil {
		return err
	}
	if err := f.rename(from, to); err != nil {
		return f.fault("move", from, err)
	}
	if err := f.sync(path.Dir(from)); err != nil {
		return f.fault("move", from, err)
	}
	return nil
}

// missing reports whether an error means that a name does not exist. ENOTDIR
// means that a part of its path is a file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func (f *Folder) fault(verb, name string, err error) error {
	if missing(err) {
		return fmt.Errorf("blob %s: %w", name, store.ErrNotFound)
	}
	return refusal(verb, name, err)
}

func refusal(verb, name string, err error) error {
	return store.SystemError(fmt.Errorf("%s blob %s: %w", verb, name, err))
}

// List returns the blobs whose names begin with prefix.
func (f *Folder) List(ctx context.Context, prefix string) iter.Seq2[store.BlobInfo, error] {
	return func(yield func(store.BlobInfo, error) bool) {
		names, err := f.names(ctx, prefix)
		if err != nil {
			yield(store.BlobInfo{}, fmt.Errorf("list blobs: %w", err))
			return
		}
		for _, name := range names {
			info, err := f.Stat(ctx, name)
			if errors.Is(err, store.ErrNotFound) {
				continue // removed meanwhile
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// names returns the sorted names of the blobs that begin with prefix.
func (f *Folder) names(ctx context.Context, prefix string) ([]string, error) {
	start := "."
	if i := strings.LastIndexByte(prefix, '/'); i > 0 {
		start = prefix[:i]
	}
	if !fs.ValidPath(start) {
		return nil, nil // not the beginning of a name
	}
	root, err := f.root()
	if err != nil {
		if missing(err) {
			err = nil
		}
		return nil, err
	}
	var names []string
	err = fs.WalkDir(root.FS(), start, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case missing(err):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.Type().IsRegular() && strings.HasPrefix(name, prefix) && !strings.HasPrefix(path.Base(name), temporary):
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// readerOf stops reading when ctx is done.
func readerOf(ctx context.Context, r io.Reader) io.Reader { return &canceled{ctx: ctx, r: r} }

type canceled struct {
	ctx context.Context //nolint:containedctx // it lives for one copy
	r   io.Reader
}

func (c *canceled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
