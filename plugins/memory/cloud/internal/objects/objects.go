// Package objects stores the memory's blobs as objects of package objstore.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Backend makes the addresses of a scheme usable in settings.memory.blobs.
func Backend(scheme objstore.Scheme) store.BlobBackend {
	return store.BlobBackend{Schemes: scheme.Names, Env: scheme.Env, Open: func(ctx context.Context, c store.BlobConfig) (store.BlobStorage, error) {
		var settings objstore.Settings
		if err := c.Decode(&settings); err != nil {
			return nil, err
		}
		bucket, err := Open(ctx, c.URL, settings, c.Timeout, scheme)
		if err != nil {
			return nil, err
		}
		return New(bucket), nil
	}}
}

// Open opens the bucket at an address. timeout is the default of the time without progress.
func Open(ctx context.Context, address string, settings objstore.Settings, timeout time.Duration, schemes ...objstore.Scheme) (*objstore.Bucket, error) {
	if settings.StallSeconds == 0 {
		settings.StallSeconds = timeout.Seconds()
	}
	return objstore.Open(ctx, address, settings, schemes...)
}

// Env returns the environment variables that services read.
func Env(schemes []objstore.Scheme) (names []string) {
	for _, scheme := range schemes {
		names = append(names, scheme.Env...)
	}
	return names
}

// Blobs stores each blob as an object of the same name.
type Blobs struct{ bucket *objstore.Bucket }

// New stores blobs in a bucket, which Close closes.
func New(bucket *objstore.Bucket) *Blobs { return &Blobs{bucket} }

// Bucket returns the bucket.
func (b *Blobs) Bucket() *objstore.Bucket { return b.bucket }

// Close releases the connections.
func (b *Blobs) Close() error { return b.bucket.Close() }

func toInfo(o objstore.Object) store.BlobInfo {
	return store.BlobInfo{Name: o.Name, Size: o.Size, Modified: o.Modified}
}

// toError replaces the errors that callers of a BlobStorage branch on.
func toError(name string, err error) error {
	if errors.Is(err, objstore.ErrNotFound) {
		return fmt.Errorf("blob %s: %w", name, store.ErrNotFound)
	}
	return err
}

// Put stores the data of r.
func (b *Blobs) Put(ctx context.Context, name string, r io.Reader) (store.BlobInfo, error) {
	if err := store.CheckBlobName(name); err != nil {
		return store.BlobInfo{}, err
	}
	o, err := b.bucket.Put(ctx, name, r, objstore.PutOptions{})
	return toInfo(o), toError(name, err)
}

// Get opens a blob. After a broken connection, reading continues only if the blob was not replaced meanwhile.
func (b *Blobs) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := store.CheckBlobName(name); err != nil {
		return nil, err
	}
	_, r, err := b.bucket.Get(ctx, name, 0, objstore.All)
	if err != nil {
		return nil, toError(name, err)
	}
	return r, nil
}

// Stat describes a blob.
func (b *Blobs) Stat(ctx context.Context, name string) (store.BlobInfo, error) {
	if err := store.CheckBlobName(name); err != nil {
		return store.BlobInfo{}, err
	}
	o, err := b.bucket.Stat(ctx, name)
	return toInfo(o), toError(name, err)
}

// Delete removes a blob.
func (b *Blobs) Delete(ctx context.Context, name string) error {
	if err := store.CheckBlobName(name); err != nil {
		return err
	}
	return b.bucket.Delete(ctx, name)
}

// Move copies a blob and deletes the original: a crash in between leaves both.
func (b *Blobs) Move(ctx context.Context, from, to string) error {
	if err := errors.Join(store.CheckBlobName(from), store.CheckBlobName(to)); err != nil {
		return err
	}
	if from == to {
		_, err := b.Stat(ctx, from)
		return err
	}
	if err := b.bucket.Copy(ctx, from, to); err != nil {
		return toError(from, err)
	}
	return b.bucket.Delete(context.WithoutCancel(ctx), from)
}

// List returns the blobs whose names begin with prefix. It omits objects of other programs whose names are not valid.
func (b *Blobs) List(ctx context.Context, prefix string) iter.Seq2[store.BlobInfo, error] {
	return func(yield func(store.BlobInfo, error) bool) {
		for o, err := range b.bucket.List(ctx, prefix) {
			if err == nil && store.CheckBlobName(o.Name) != nil {
				continue
			}
			if !yield(toInfo(o), err) || err != nil {
				return
			}
		}
	}
}
