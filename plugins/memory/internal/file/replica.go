package file

import (
	"hash/maphash"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Contents returns the contents of the files in a storage, for a memory that also
// writes the documents of files itself; see Options.
func Contents(blobs store.BlobStorage) *content.Store { return content.New(blobs, blobPrefix) }

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
