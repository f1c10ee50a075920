package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/azure"
	"github.com/the-edge-agent/tea/objstore/gcs"
	"github.com/the-edge-agent/tea/objstore/s3"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// store holds values by slash-separated names. Its error for an unknown name wraps
// [fs.ErrNotExist].
type store interface {
	read(ctx context.Context, name string) ([]byte, error)
	// write writes a value. On return it is durable.
	write(ctx context.Context, name string, data []byte) error
	// size returns the size of a value; -1 if it does not exist.
	size(ctx context.Context, name string) (int64, error)
	// below returns the names directly below a prefix, each with the time of its newest
	// value.
	below(ctx context.Context, prefix string) (map[string]time.Time, error)
	// remove removes a name and everything below it.
	remove(ctx context.Context, name string) error
	close() error
}

// identity is the name of the value that identifies a store.
const identity = "store-id"

// openStore opens the store at an address, and returns its identity, which is the same
// for everyone who opens it.
func openStore(ctx context.Context, address string) (s store, id string, err error) {
	if s = folder(address); objstore.IsAddress(address) {
		bucket, err := objstore.Open(ctx, address, objstore.Settings{}, s3.Scheme(), gcs.Scheme(), azure.Scheme())
		if err != nil {
			return nil, "", fmt.Errorf("open --blobs: %w", err)
		}
		s = objects{bucket}
	}
	for range 2 {
		raw, failed := s.read(ctx, identity)
		if errors.Is(failed, fs.ErrNotExist) {
			// If another process is faster, its identity is read next.
			err = s.write(ctx, identity, []byte(host.NewRunID()))
			continue
		}
		if err = failed; err == nil {
			return s, string(raw), nil
		}
		break
	}
	return nil, "", errors.Join(fmt.Errorf("open --blobs: %w", err), s.close())
}

// folder is a directory.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

func (f folder) read(_ context.Context, name string) ([]byte, error) {
	return os.ReadFile(f.path(name))
}

func (f folder) write(_ context.Context, name string, data []byte) error {
	if name != identity {
		// If the file system is not mounted now, the value would be lost in the mount point.
		if _, err := os.Stat(f.path(identity)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s has no file %s: is it mounted?", string(f), identity)
		}
	}
	if err := os.MkdirAll(filepath.Dir(f.path(name)), 0o700); err != nil {
		return err
	}
	if name != identity {
		return atomicfile.Write(f.path(name), 0o600, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	}
	// If several processes write it, exactly one must win.
	own := f.path(name + "-" + string(data))
	if err := os.WriteFile(own, data, 0o600); err != nil {
		return err
	}
	err := os.Link(own, f.path(name))
	if err = errors.Join(err, os.Remove(own)); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (f folder) size(_ context.Context, name string) (int64, error) {
	about, err := os.Stat(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	return about.Size(), nil
}

func (f folder) below(_ context.Context, prefix string) (map[string]time.Time, error) {
	entries, err := os.ReadDir(f.path(prefix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			found[e.Name()] = info.ModTime()
		}
	}
	return found, nil
}

func (f folder) remove(_ context.Context, name string) error { return os.RemoveAll(f.path(name)) }

func (folder) close() error { return nil }

// objects is an object storage bucket, or a part of one.
type objects struct{ bucket *objstore.Bucket }

func (o objects) read(ctx context.Context, name string) ([]byte, error) {
	_, r, err := o.bucket.Get(ctx, name, 0, objstore.All)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, &fs.PathError{Op: "read", Path: o.bucket.Address().String() + name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func (o objects) write(ctx context.Context, name string, data []byte) error {
	options := objstore.PutOptions{}
	if name == identity {
		options.Match = objstore.Absent
	}
	_, err := o.bucket.Put(ctx, name, bytes.NewReader(data), options)
	if errors.Is(err, objstore.ErrConflict) {
		return nil // it already exists
	}
	return err
}

func (o objects) size(ctx context.Context, name string) (int64, error) {
	about, err := o.bucket.Stat(ctx, name)
	if errors.Is(err, objstore.ErrNotFound) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	return about.Size, nil
}

func (o objects) below(ctx context.Context, prefix string) (map[string]time.Time, error) {
	found := map[string]time.Time{}
	for object, err := range o.bucket.List(ctx, prefix+"/") {
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(object.Name, prefix+"/"), "/")
		if object.Modified.After(found[name]) {
			found[name] = object.Modified
		}
	}
	return found, nil
}

func (o objects) remove(ctx context.Context, name string) error {
	for object, err := range o.bucket.List(ctx, path.Clean(name)+"/") {
		if err == nil {
			err = o.bucket.Delete(ctx, object.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o objects) close() error { return o.bucket.Close() }
