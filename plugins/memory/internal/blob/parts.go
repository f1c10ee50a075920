package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Database stores contents in parts of a fixed size. The names that it gets are valid. The
// content of a blob that was replaced or removed stays for an hour, for its readers.
type Database interface {
	// AddParts adds parts to a content that no blob has yet, and returns its id; the first
	// part has the number from. "" is the id of a new content. The parts are kept for a day.
	AddParts(ctx context.Context, id string, from int, parts [][]byte) (string, error)
	// Publish adds c.Parts to the content, the first with the number from, and then makes
	// the content the blob's, in place of an existing one. It fails with [Expired] if
	// earlier parts were removed.
	Publish(ctx context.Context, b store.BlobInfo, c Content, from int) error
	// Open returns the content of a blob with its first parts. It fails with
	// [Missing] if the blob does not exist.
	Open(ctx context.Context, name string) (Content, error)
	// ReadParts returns parts of a content from a number on.
	ReadParts(ctx context.Context, id string, from int) ([][]byte, error)
	Delete(ctx context.Context, name string) error
	// Move renames a blob, replaces an existing one, and reports whether it exists.
	Move(ctx context.Context, from, to string) (existed bool, err error)
	// List returns blobs in the order of their names, after a name.
	List(ctx context.Context, prefix, after string, limit int) ([]store.BlobInfo, error)
}

// Content is the content of a blob, with some of its parts.
type Content struct {
	ID    string
	Size  int64
	Parts [][]byte
}

// Missing returns the error for a blob that does not exist.
func Missing(name string) error { return fmt.Errorf("blob %s: %w", name, store.ErrNotFound) }

// Expired returns the error of an upload whose parts were removed.
func Expired(name string) error {
	return tea.Errorf(tea.Timeout, "the upload of %s took longer than a day; store it again", name)
}

// Parts is a BlobStorage in a Database. It is safe for concurrent use.
type Parts struct {
	Database Database
	// Size is the size of a part, AtOnce the number of parts that one request takes.
	Size, AtOnce int
	Now          func() time.Time
}

var _ store.BlobStorage = (*Parts)(nil)

// Put stores the data of r under name.
func (p *Parts) Put(ctx context.Context, name string, r io.Reader) (store.BlobInfo, error) {
	if err := errors.Join(store.CheckBlobName(name), ctx.Err()); err != nil {
		return store.BlobInfo{}, err
	}
	c, from := Content{}, 0
	for {
		part, err := io.ReadAll(io.LimitReader(r, int64(p.Size)))
		if err != nil {
			return store.BlobInfo{}, fmt.Errorf("read the content of blob %s: %w", name, err)
		}
		if len(part) > 0 && len(c.Parts) == p.AtOnce {
			if c.ID, err = p.Database.AddParts(ctx, c.ID, from, c.Parts); err != nil {
				return store.BlobInfo{}, err
			}
			from, c.Parts = from+len(c.Parts), nil
		}
		if len(part) > 0 {
			c.Parts, c.Size = append(c.Parts, part), c.Size+int64(len(part))
		}
		if len(part) < p.Size {
			break
		}
	}
	info := store.BlobInfo{Name: name, Size: c.Size, Modified: clock.FromMicro(p.Now().UnixMicro())}
	return info, p.Database.Publish(ctx, info, c, from)
}

// Get opens a blob for reading, with its first parts.
func (p *Parts) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := store.CheckBlobName(name); err != nil {
		return nil, err
	}
	c, err := p.Database.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	r := &partReader{ctx: ctx, from: p.Database, name: name, id: c.ID, left: c.Size}
	r.take(c.Parts)
	return r, nil
}

// partReader reads the parts of a content.
type partReader struct {
	ctx      context.Context //nolint:containedctx // the context of Get: Read has no parameter for one
	from     Database
	name, id string
	parts    [][]byte
	next     int   // the number of the part after these
	left     int64 // the bytes from there on
}

func (r *partReader) take(parts [][]byte) {
	r.parts, r.next = parts, r.next+len(parts)
	for _, part := range parts {
		r.left -= int64(len(part))
	}
}

// Read reads from the parts, and further ones from the database.
func (r *partReader) Read(p []byte) (int, error) {
	for len(r.parts) == 0 || len(r.parts[0]) == 0 {
		switch {
		case len(r.parts) > 0:
			r.parts = r.parts[1:]
			continue
		case r.left <= 0:
			return 0, io.EOF
		}
		parts, err := r.from.ReadParts(r.ctx, r.id, r.next)
		if err != nil {
			return 0, fmt.Errorf("read blob %s: %w", r.name, err)
		}
		if len(parts) == 0 {
			return 0, tea.Errorf(tea.InternalError, "a part of blob %s is missing", r.name)
		}
		r.take(parts)
	}
	n := copy(p, r.parts[0])
	r.parts[0] = r.parts[0][n:]
	return n, nil
}

// Close ends the reading.
func (r *partReader) Close() error { return nil }

// Stat describes a blob.
func (p *Parts) Stat(ctx context.Context, name string) (store.BlobInfo, error) {
	if err := store.CheckBlobName(name); err != nil {
		return store.BlobInfo{}, err
	}
	found, err := p.Database.List(ctx, name, "", 1)
	if err == nil && (len(found) == 0 || found[0].Name != name) {
		err = Missing(name)
	}
	if err != nil {
		return store.BlobInfo{}, err
	}
	return found[0], nil
}

// Delete removes a blob.
func (p *Parts) Delete(ctx context.Context, name string) error {
	if err := store.CheckBlobName(name); err != nil {
		return err
	}
	return p.Database.Delete(ctx, name)
}

// Move renames a blob and replaces an existing one.
func (p *Parts) Move(ctx context.Context, from, to string) error {
	if err := errors.Join(store.CheckBlobName(from), store.CheckBlobName(to)); err != nil {
		return err
	}
	if from == to {
		_, err := p.Stat(ctx, from)
		return err
	}
	existed, err := p.Database.Move(ctx, from, to)
	if err == nil && !existed {
		err = Missing(from)
	}
	return err
}

// listPage is the number of blobs that one request lists.
const listPage = 1000

// List returns the blobs whose names begin with prefix.
func (p *Parts) List(ctx context.Context, prefix string) iter.Seq2[store.BlobInfo, error] {
	return func(yield func(store.BlobInfo, error) bool) {
		for after := ""; ; {
			page, err := p.Database.List(ctx, prefix, after, listPage)
			if err != nil {
				yield(store.BlobInfo{}, err)
				return
			}
			for _, info := range page {
				if after = info.Name; !yield(info, nil) {
					return
				}
			}
			if len(page) < listPage {
				return
			}
		}
	}
}
