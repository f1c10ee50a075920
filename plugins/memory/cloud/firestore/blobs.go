package firestore

import (
	"context"
	"io"
	"iter"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// noBlobs are the contents of files without settings.memory.blobs: a document is
// too small for them.
type noBlobs struct{}

var _ store.BlobStorage = noBlobs{}

func refused() error {
	return store.Unsupported(Name, store.Contents, "set settings.memory.blobs to gs://BUCKET or another storage")
}

// Put is refused.
func (noBlobs) Put(context.Context, string, io.Reader) (store.BlobInfo, error) {
	return store.BlobInfo{}, refused()
}

// Get is refused.
func (noBlobs) Get(context.Context, string) (io.ReadCloser, error) { return nil, refused() }

// Stat is refused.
func (noBlobs) Stat(context.Context, string) (store.BlobInfo, error) {
	return store.BlobInfo{}, refused()
}

// Delete is refused.
func (noBlobs) Delete(context.Context, string) error { return refused() }

// Move is refused.
func (noBlobs) Move(context.Context, string, string) error { return refused() }

// List is refused.
func (noBlobs) List(context.Context, string) iter.Seq2[store.BlobInfo, error] {
	return func(yield func(store.BlobInfo, error) bool) { yield(store.BlobInfo{}, refused()) }
}
