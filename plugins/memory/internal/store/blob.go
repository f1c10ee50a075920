package store

import (
	"context"
	"io"
	"iter"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// BlobStorage keeps byte strings under names such as "files/notes/a.md". A
// name has parts of ASCII letters, digits and ._=- between slashes, none of
// them "." or ".."; other names are a validation_error (see [CheckBlobName]).
// A blob is there whole or not at all, and one that is open for reading can be
// read to its end, whatever becomes of its name.
//
// A call whose context has ended fails with the context's error, or has done
// its work. A storage that must not be written is a permission_denied.
//
// Implementations are safe for concurrent use.
type BlobStorage interface {
	// Put stores what r gives under name, replacing what was there. It is
	// durable on return.
	Put(ctx context.Context, name string, r io.Reader) (BlobInfo, error)
	// Get opens a blob for reading; the caller closes it. The error wraps
	// ErrNotFound where there is none.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Stat describes a blob without reading it.
	Stat(ctx context.Context, name string) (BlobInfo, error)
	// Delete removes a blob; one that is not there is no error.
	Delete(ctx context.Context, name string) error
	// Move gives a blob another name, replacing what was there.
	Move(ctx context.Context, from, to string) error
	// List gives the blobs whose names begin with prefix, in the order of
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

// CheckBlobName refuses what is no name of a blob.
func CheckBlobName(name string) error {
	if name == "" || len(name) > maxBlobName {
		return tea.Errorf(tea.ValidationError, "the name of a blob has 1 to %d bytes, not %d", maxBlobName, len(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || len(part) > maxBlobPart || strings.ContainsFunc(part, oddInBlobName) {
			return tea.Errorf(tea.ValidationError, "%q is no name of a blob", name)
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
