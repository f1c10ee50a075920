package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/filter"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// pageSize is how many documents are read at a time.
const pageSize = 500

// Stat describes the file under a path, or gives an error that wraps
// store.ErrNotFound. A file of a session is found under its path among the
// active ones and among the archived ones, wherever it is.
func (f *Files) Stat(ctx context.Context, path string) (File, error) {
	places := []any{path}
	if strings.HasPrefix(path, SessionPrefix) {
		places = append(places, ArchivePrefix+path)
	} else if active, ok := strings.CutPrefix(path, ArchivePrefix); ok && strings.HasPrefix(active, SessionPrefix) {
		places = append(places, active)
	}
	// One question, so that a file that moves meanwhile is in one of them.
	found, err := f.o.Documents.Query(ctx, store.DocumentQuery{Kind: Kind, OrderBy: "id", Limit: 1, Where: []store.Condition{{Field: "id", Op: store.In, Value: places}}})
	if err != nil {
		return File{}, err
	}
	if len(found) == 0 {
		return File{}, fmt.Errorf("file %q: %w", path, store.ErrNotFound)
	}
	return decode(found[0])
}

// Read gives a file and its content; see Stat.
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

// Open gives a file and its content for reading; the caller closes it. See
// Stat. A damaged content gives an error at its end.
func (f *Files) Open(ctx context.Context, path string) (File, io.ReadCloser, error) {
	defer f.content.Hold()()
	file, err := f.Stat(ctx, path)
	if err != nil {
		return File{}, nil, err
	}
	r, err := f.content.Open(ctx, file.Hash)
	if errors.Is(err, store.ErrNotFound) {
		return File{}, nil, fmt.Errorf("the content of %s is gone: %w", path, content.ErrDamaged) // which is no file that was not found
	}
	if err != nil {
		return File{}, nil, fmt.Errorf("read %s: %w", path, err)
	}
	return file, r, nil
}

// listed opens a file as a listing has described it, or as it is now where
// that content is gone.
func (f *Files) listed(ctx context.Context, file File) (io.ReadCloser, error) {
	r, err := f.Content(ctx, file)
	if errors.Is(err, store.ErrNotFound) {
		_, r, err = f.Open(ctx, file.Path)
	}
	return r, err
}

// Query selects files.
type Query struct {
	// Prefix is what the paths begin with.
	Prefix string
	// Pattern restricts the paths; see [Compile]. nil = all.
	Pattern *Glob
	// Within is the beginning of the paths that Prefix, Pattern and After leave
	// out, such as a session's prefix.
	Within string
	// Metadata restricts to files whose metadata fits it.
	Metadata filter.Filter
	// Archived includes the files of archived sessions. A prefix that leads
	// to them does the same.
	Archived bool
	// After is the path after which the files begin.
	After string
}

// prefix is what the paths begin with for sure.
func (q Query) prefix() string {
	prefix := q.Prefix
	if q.Pattern != nil && strings.HasPrefix(q.Pattern.prefix, prefix) {
		prefix = q.Pattern.prefix
	}
	return q.Within + prefix
}

func (q Query) matches(f File) bool {
	return (q.Pattern == nil || q.Pattern.Match(strings.TrimPrefix(f.Path, q.Within))) && filter.Matches(f.Metadata, q.Metadata)
}

// All gives the files that a query selects in the order of their paths. A file
// that is stored meanwhile is among them if its path is still to come.
func (f *Files) All(ctx context.Context, q Query) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		const archive = ArchivePrefix + SessionPrefix
		prefix := q.prefix()
		withArchive := q.Archived || strings.HasPrefix(prefix, archive)
		after := ""
		if q.After != "" {
			after = q.Within + q.After
		}
		for {
			page, err := f.o.Documents.Query(ctx, below(prefix, after, pageSize))
			if err != nil {
				yield(File{}, err)
				return
			}
			skipped := false
			for _, d := range page {
				if after = d.ID; !withArchive && strings.HasPrefix(d.ID, archive) {
					after, skipped = archive+"\U0010FFFF", true // go on behind them
					break
				}
				file, err := decode(d)
				if err != nil {
					yield(File{}, err)
					return
				}
				if strings.HasPrefix(file.Path, q.Within+q.Prefix) && q.matches(file) && !yield(file, nil) {
					return
				}
			}
			if len(page) < pageSize && !skipped {
				return
			}
		}
	}
}

// List gives at most limit files, and the path to go on after; "" at the end.
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

// below asks for the next files whose path begins with prefix.
func below(prefix, after string, limit int) store.DocumentQuery {
	q := store.DocumentQuery{Kind: Kind, OrderBy: "id", Limit: limit}
	if prefix != "" {
		q.Where = append(q.Where, store.Condition{Field: "id", Op: store.Prefix, Value: prefix})
	}
	if after != "" {
		q.Where = append(q.Where, store.Condition{Field: "id", Op: store.Gt, Value: after})
	}
	return q
}
