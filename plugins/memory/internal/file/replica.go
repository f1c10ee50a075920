package file

import (
	"context"
	"hash/maphash"
	"io"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Contents returns the contents of the files in a storage, for a backend that
// writes the documents of files itself.
func Contents(blobs store.BlobStorage) *content.Store { return content.New(blobs, blobPrefix) }

// OpenContent opens the content with a hash; the caller closes it. Reading a damaged
// content fails at its end. The error wraps [store.ErrNotFound] if it does not
// exist.
func (f *Files) OpenContent(ctx context.Context, hash string) (io.ReadCloser, error) {
	defer f.content.Hold()()
	return f.content.Open(ctx, hash)
}

// Hold prevents the removal of contents, and changes of the files with these
// paths, until release is called.
func (f *Files) Hold(paths []string) (release func()) {
	var locked []uint64
	for _, path := range paths {
		locked = append(locked, maphash.String(f.seed, path)%stripes)
	}
	slices.Sort(locked) // so that two callers lock in the same order
	locked = slices.Compact(locked)
	for _, i := range locked {
		f.writing[i].Lock()
	}
	held := f.content.Hold()
	return func() {
		held()
		for _, i := range locked {
			f.writing[i].Unlock()
		}
	}
}

// Has reports whether the content with a hash exists.
func (f *Files) Has(ctx context.Context, hash string) bool {
	_, err := f.content.Stat(ctx, hash)
	return err == nil
}

// Save stores a content. The caller holds the files.
func (f *Files) Save(ctx context.Context, hash string, data []byte) error {
	return f.content.Save(ctx, hash, data)
}
