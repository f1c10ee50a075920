package store

import (
	"context"
	"io"
	"iter"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// BlobStorage stores byte strings under names such as "files/notes/a.md". A name
// consists of parts of ASCII letters, digits and ._=- between slashes, none of
// them "." or ".."; other names are a validation_error (see [CheckBlobName]). A
// blob appears atomically. An open blob can be read to its end even after it was
// replaced, moved or deleted.
//
// A call whose context has ended fails with the context's error or succeeds. A
// storage that cannot be written is a permission_denied.
//
// Implementations are safe for concurrent use.
type BlobStorage interface {
	// Put stores the data of r under name and replaces an existing blob. It is
	// durable on return.
	Put(ctx context.Context, name string, r io.Reader) (BlobInfo, error)
	// Get opens a blob for reading; the caller closes it. The error wraps
	// ErrNotFound if it does not exist.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Stat describes a blob without reading it.
	Stat(ctx context.Context, name string) (BlobInfo, error)
	// Delete removes a blob. A blob that does not exist is not an error.
	Delete(ctx context.Context, name string) error
	// Move renames a blob and replaces an existing one.
	Move(ctx context.Context, from, to string) error
	// List returns the blobs whose names begin with prefix, in the order of
	// their names.
	List(ctx context.Context, prefix string) iter.Seq2[BlobInfo, error]
}

// BlobInfo describes a blob.
type BlobInfo struct {
	Name     string
	Size     int64
	Modified time.Time
}

const (
	maxBlobName = 1024
	maxBlobPart = 255
)

// CheckBlobName returns a validation_error for an invalid name.
func CheckBlobName(name string) error {
	if name == "" || len(name) > maxBlobName {
		return tea.Errorf(tea.ValidationError, "the name of a blob must have 1 to %d bytes, not %d", maxBlobName, len(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || len(part) > maxBlobPart || strings.ContainsFunc(part, oddInBlobName) {
			return tea.Errorf(tea.ValidationError, "%q is not a valid name of a blob", name)
		}
	}
	return nil
}

func oddInBlobName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("._=-", r):
		return false
	}
	return true
}
