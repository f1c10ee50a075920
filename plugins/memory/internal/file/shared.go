package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Shared provides the files of memory.cloud_store, which Files only reads and
// moves. A file and a shared file can have the same path.
type Shared interface {
	// Kind returns the kind of the documents.
	Kind() string
	// Readable reports whether this device has access to the contents. If not, the
	// files are left out.
	Readable() bool
	// Describe reads a document. It sets Shared, and Damaged if the document is
	// damaged.
	Describe(d store.Document) File
	// Open opens the content of a file; see Files.Content.
	Open(ctx context.Context, f File) (io.ReadCloser, error)
	// Renamed returns the body of a document for another path.
	Renamed(d store.Document, path string) (json.RawMessage, error)
}

// The sources of files.
const (
	Own   = "file"
	Cloud = "cloud"
)

// Source returns Own or Cloud.
func (f File) Source() string {
	if f.Shared {
		return Cloud
	}
	return Own
}

// SessionOf returns the session that a path belongs to, or "".
func SessionOf(path string) string {
	inside, ok := strings.CutPrefix(strings.TrimPrefix(path, ArchivePrefix), SessionPrefix)
	id, _, below := strings.Cut(inside, "/")
	if !ok || !below {
		return ""
	}
	return id
}

type kind struct {
	name     string
	describe func(store.Document) File
}

// kinds returns the kind of the files and, if they are readable, the kind of the shared
// files.
func (f *Files) kinds() []kind {
	all := []kind{{Kind, decodeListed}}
	if s := f.o.Shared; s != nil && s.Readable() {
		all = append(all, kind{s.Kind(), s.Describe})
	}
	return all
}

// All returns the selected files in the order of their paths; a shared file comes
// after a file with the same path. A file that is stored meanwhile is included if
// its path comes later. A damaged file is included whatever metadata is selected.
func (f *Files) All(ctx context.Context, q Query) iter.Seq2[File, error] {
	kinds := f.kinds()
	if !q.Shared || len(kinds) == 1 {
		return f.each(ctx, q, kinds[0])
	}
	return func(yield func(File, error) bool) {
		shared, stop := iter.Pull2(f.each(ctx, q, kinds[1]))
		defer stop()
		next, err, more := shared()
		for own, ownErr := range f.each(ctx, q, kinds[0]) {
			for more && err == nil && ownErr == nil && next.Path < own.Path {
				if !yield(next, nil) {
					return
				}
				next, err, more = shared()
			}
			if !yield(own, ownErr) || ownErr != nil {
				return
			}
		}
		for more {
			if !yield(next, err) || err != nil {
				return
			}
			next, err, more = shared()
		}
	}
}

// StatShared describes a shared file, or returns an error that wraps
// store.ErrNotFound.
func (f *Files) StatShared(ctx context.Context, path string) (File, error) {
	kinds := f.kinds()
	if len(kinds) == 1 {
		return File{}, fmt.Errorf("file %q: %w", path, store.ErrNotFound)
	}
	d, err := f.o.Documents.Get(ctx, kinds[1].name, path)
	if err != nil {
		return File{}, err
	}
	hidden, err := f.o.Hidden(ctx)
	file := kinds[1].describe(d)
	file.Hidden = err == nil && (file.Hidden || hidden(file.SessionID))
	return file, err
}

// Changes returns the files that were stored or moved after a change (0 = all
// files), the number of the last change, and the number of all files, including
// files of archived sessions. It does not report removed files: a caller that
// adds the changes to its list then has more files than total, and must request
// all files again. The numbers of changes only increase within one process.
func (f *Files) Changes(ctx context.Context, after int64) (changed []File, last int64, total int, err error) {
	return f.changes(ctx, f.kinds()[0], after)
}

// SharedChanges is Changes for the shared files, which are numbered separately.
func (f *Files) SharedChanges(ctx context.Context, after int64) (changed []File, last int64, total int, err error) {
	kinds := f.kinds()
	if len(kinds) == 1 {
		return nil, after, 0, nil
	}
	return f.changes(ctx, kinds[1], after)
}

func (f *Files) changes(ctx context.Context, k kind, after int64) (changed []File, last int64, total int, err error) {
	hidden, err := f.o.Hidden(ctx)
	if err != nil {
		return nil, 0, 0, err
	}
	docs, err := f.changed(ctx, k.name, after)
	if err != nil {
		return nil, 0, 0, err
	}
	last = after
	for _, d := range docs {
		file := k.describe(d)
		file.Hidden = file.Hidden || hidden(file.SessionID)
		changed, last = append(changed, file), max(last, d.Seq)
	}
	total, err = f.o.Documents.Count(ctx, store.DocumentQuery{Kind: k.name})
	return changed, last, total, err
}

// changed returns the documents of a kind that changed after a change (0 = all).
func (f *Files) changed(ctx context.Context, kind string, after int64) ([]store.Document, error) {
	for limit := 1; ; limit *= 32 {
		if after == 0 {
			limit = math.MaxInt32
		}
		// Read the last changes first, and more of them in each step. Each step is one statement, because a change
		// between two statements could hide another one.
		page, err := f.o.Documents.Query(ctx, store.DocumentQuery{Kind: kind, OrderBy: "seq", Descending: true, Limit: limit})
		if err != nil {
			return nil, err
		}
		if len(page) == limit && page[limit-1].Seq > after {
			continue
		}
		for i, d := range page {
			if d.Seq <= after {
				return page[:i], nil
			}
		}
		return page, nil
	}
}

// Moves returns the changes that replace the prefix of the paths of all files below it,
// including shared files. The caller applies them, and must prevent other writes there
// until then.
func (f *Files) Moves(ctx context.Context, from, to string) (changes []store.Change, err error) {
	same := func(d store.Document, _ string) (json.RawMessage, error) { return d.Body, nil }
	if changes, err = f.moves(ctx, Kind, from, to, same); err != nil || f.o.Shared == nil {
		return changes, err
	}
	more, err := f.moves(ctx, f.o.Shared.Kind(), from, to, f.o.Shared.Renamed)
	return append(changes, more...), err
}

func (f *Files) moves(ctx context.Context, kind, from, to string, renamed func(store.Document, string) (json.RawMessage, error)) (changes []store.Change, err error) {
	for d, err := range f.below(ctx, kind, from, "") {
		if err != nil {
			return nil, err
		}
		path := to + strings.TrimPrefix(d.ID, from)
		body, err := renamed(d, path)
		if err != nil {
			return nil, err
		}
		changes = append(changes, store.Change{Kind: kind, ID: path, Body: body, If: store.New}, store.Change{Kind: kind, ID: d.ID, If: d.Version})
	}
	return changes, nil
}

// Content opens the content with the hash in file, even if the file has changed since. The caller must close it. The
// error wraps store.ErrNotFound if this content was removed.
func (f *Files) Content(ctx context.Context, file File) (io.ReadCloser, error) {
	if file.Shared {
		return f.o.Shared.Open(ctx, file)
	}
	defer f.content.Hold()()
	r, err := f.content.Open(ctx, file.Hash)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("read %s: %w", file.Path, err)
	}
	return r, err
}
