package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// Changes gives the files that were stored or moved after the change of a
// number, 0 = all files; the number of the last change; and how many files
// there are. What was removed is not told: whoever knew the files before, and
// adds these, has too many then, and asks for all of them. The numbers only
// grow while the process runs. Files of archived sessions are among them.
func (f *Files) Changes(ctx context.Context, after int64) (changed []File, last int64, total int, err error) {
	last = after
	for limit := 1; ; limit *= 32 {
		if after == 0 {
			limit = math.MaxInt32
		}
		// The last ones first, and with every step more of them in one
		// statement, so that what happens meanwhile cannot hide one.
		page, err := f.o.Documents.Query(ctx, store.DocumentQuery{Kind: Kind, OrderBy: "seq", Descending: true, Limit: limit})
		if err != nil {
			return nil, 0, 0, err
		}
		if len(page) == limit && page[limit-1].Seq > after {
			continue
		}
		for _, d := range page {
			if d.Seq <= after {
				break
			}
			file, err := decode(d)
			if err != nil {
				return nil, 0, 0, err
			}
			changed, last = append(changed, file), max(last, d.Seq)
		}
		total, err = f.o.Documents.Count(ctx, store.DocumentQuery{Kind: Kind})
		return changed, last, total, err
	}
}

// Content opens the content of a file as it was described; the caller closes
// it. The error wraps store.ErrNotFound where the file has changed since and
// nothing has that content any more.
func (f *Files) Content(ctx context.Context, file File) (io.ReadCloser, error) {
	defer f.content.Hold()()
	r, err := f.content.Open(ctx, file.Hash)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("read %s: %w", file.Path, err)
	}
	return r, err
}
