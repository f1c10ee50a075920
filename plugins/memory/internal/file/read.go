package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Stat describes the file at a path, or returns an error that wraps
// store.ErrNotFound. A file of a session is found by its active path and by its
// archived path, wherever it is.
func (f *Files) Stat(ctx context.Context, path string) (File, error) {
	places := []any{path}
	if strings.HasPrefix(path, SessionPrefix) {
		places = append(places, ArchivePrefix+path)
	} else if active, ok := strings.CutPrefix(path, ArchivePrefix); ok && strings.HasPrefix(active, SessionPrefix) {
		places = append(places, active)
	}
	// One query finds a file that moves meanwhile.
	found, err := f.o.Documents.Query(ctx, store.DocumentQuery{Kind: Kind, OrderBy: "id", Limit: 1, Where: []store.Condition{{Field: "id", Op: store.In, Value: places}}})
	if err != nil {
		return File{}, err
	}
	if len(found) == 0 {
		return File{}, fmt.Errorf("file %q: %w", path, store.ErrNotFound)
	}
	file, err := decode(found[0])
	if err != nil {
		return File{}, err
	}
	hidden, err := f.o.Hidden(ctx)
	if err != nil {
		return File{}, err
	}
	file.Hidden = hidden(file.SessionID)
	return file, nil
}

// Read returns a file and its content; see Stat and Open for the errors.
func (f *Files) Read(ctx context.Context, path string) (File, []byte, error) {
	file, r, err := f.Open(ctx, path)
	if err != nil {
		return File{}, nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return File{}, nil, fmt.Errorf("read %s: %w", path, err)
	}
	return file, data, nil
}

// Open opens the file at a path; see Stat. The caller closes the reader. If the
// content is damaged, reading ends with an error that wraps content.ErrDamaged.
func (f *Files) Open(ctx context.Context, path string) (File, io.ReadCloser, error) {
	defer f.content.Hold()()
	for gone := ""; ; {
		file, err := f.Stat(ctx, path)
		if err != nil {
			return File{}, nil, err
		}
		r, err := f.content.Open(ctx, file.Hash)
		switch {
		case err == nil:
			return file, r, nil
		case !errors.Is(err, store.ErrNotFound):
			return File{}, nil, fmt.Errorf("read %s: %w", path, err)
		case gone == file.Hash:
			return File{}, nil, fmt.Errorf("the content of %s is missing: %w", path, content.ErrDamaged) // the file itself exists
		}
		gone = file.Hash // another device may have replaced it and removed the old content
	}
}

// listed opens a file with the content of a listing, or with the current content
// if the listed one was removed.
func (f *Files) listed(ctx context.Context, file File) (io.ReadCloser, error) {
	r, err := f.Content(ctx, file)
	if errors.Is(err, store.ErrNotFound) && !file.Shared {
		_, r, err = f.Open(ctx, file.Path)
	}
	return r, err
}

// Query selects files.
type Query struct {
	// Prefix begins the paths.
	Prefix string
	// Pattern restricts the paths; see [Compile]. nil = all.
	Pattern *Glob
	// Within is a prefix, such as a session's, to which Prefix, Pattern and After
	// are relative.
	Within string
	// Metadata restricts the files by their metadata.
	Metadata filter.Filter
	// Shared includes shared files.
	Shared bool
	// Archived includes the files of archived sessions. A prefix of archived paths
	// includes them too.
	Archived bool
	// After is the path after which the files begin.
	After string
	// Visible restricts the files by their full paths; nil = all.
	Visible func(path string) (bool, error)
}

// prefix is a prefix of all selected paths.
func (q Query) prefix() string {
	prefix := q.Prefix
	if q.Pattern != nil && strings.HasPrefix(q.Pattern.prefix, prefix) {
		prefix = q.Pattern.prefix
	}
	return q.Within + prefix
}

func (q Query) matches(f File) bool {
	return (q.Pattern == nil || q.Pattern.Match(strings.TrimPrefix(f.Path, q.Within))) && (f.Damaged || filter.Matches(f.Metadata, q.Metadata))
}

// each implements All for one kind of files.
func (f *Files) each(ctx context.Context, q Query, k kind) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		const archive = ArchivePrefix + SessionPrefix
		prefix := q.prefix()
		withArchive := q.Archived || strings.HasPrefix(prefix, archive)
		hidden, err := f.o.Hidden(ctx)
		if err != nil {
			yield(File{}, err)
			return
		}
		after := ""
		if q.After != "" {
			after = q.Within + q.After
		}
		for skipped := true; skipped; {
			skipped = false
			for d, err := range f.below(ctx, k.name, prefix, after) {
				if err != nil {
					yield(File{}, err)
					return
				}
				if !withArchive && strings.HasPrefix(d.ID, archive) {
					after, skipped = archive+"\U0010FFFF", true // skip the archived files
					break
				}
				file := k.describe(d)
				if file.Hidden = file.Hidden || hidden(file.SessionID); file.Hidden && !withArchive && q.Within == "" {
					continue
				}
				if !strings.HasPrefix(file.Path, q.Within+q.Prefix) || !q.matches(file) {
					continue
				}
				if q.Visible != nil {
					visible, err := q.Visible(file.Path)
					if err != nil {
						yield(File{}, err)
						return
					}
					if !visible {
						continue
					}
				}
				if !yield(file, nil) {
					return
				}
			}
		}
	}
}

// List returns at most limit files. next is the path for Query.After of the next
// page, "" at the end.
func (f *Files) List(ctx context.Context, q Query, limit int) (files []File, next string, err error) {
	for file, err := range f.All(ctx, q) {
		if err != nil {
			return nil, "", err
		}
		if len(files) == limit {
			return files, strings.TrimPrefix(files[limit-1].Path, q.Within), nil
		}
		files = append(files, file)
	}
	return files, "", nil
}

// below returns the files whose paths begin with prefix and are greater than after.
func (f *Files) below(ctx context.Context, kind, prefix, after string) iter.Seq2[store.Document, error] {
	q := store.DocumentQuery{Kind: kind}
	if prefix != "" {
		q.Where = []store.Condition{{Field: "id", Op: store.Prefix, Value: prefix}}
	}
	return documents.All(ctx, f.o.Documents, q, after)
}
