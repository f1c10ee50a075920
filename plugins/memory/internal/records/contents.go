package records

import (
	"context"
	"io"
	"iter"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// noContents is the contents of files in a memory that does not store them.
type noContents struct{ engine string }

var _ store.BlobStorage = noContents{}

func (n noContents) refuse() error {
	return store.Unsupported(n.engine, store.Contents, "set settings.memory.blobs to a folder or a storage")
}

func (n noContents) Put(context.Context, string, io.Reader) (store.BlobInfo, error) {
	return store.BlobInfo{}, n.refuse()
}

func (n noContents) Get(context.Context, string) (io.ReadCloser, error) { return nil, n.refuse() }

func (n noContents) Stat(context.Context, string) (store.BlobInfo, error) {
	return store.BlobInfo{}, n.refuse()
}

func (n noContents) Delete(context.Context, string) error { return n.refuse() }

func (n noContents) Move(context.Context, string, string) error { return n.refuse() }

func (n noContents) List(context.Context, string) iter.Seq2[store.BlobInfo, error] {
	return func(yield func(store.BlobInfo, error) bool) { yield(store.BlobInfo{}, n.refuse()) }
}
