package records

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// flushEvery is the number of changes after which the index is written. The next start reads the rows of later changes.
const flushEvery = 2048

// textIndex is the text index of the entries. Its files are in the database. Only one
// process writes them; others have the same index in memory.
type textIndex struct {
	m     *memory
	files store.FileStore

	mu       sync.Mutex // held while the index catches up
	index    *fulltext.Index
	identity string
	last     int64 // the last change in the index
	flushed  int64 // the last change in its files
	closed   bool
}

// search adds the entries that match the query, best first.
func (x *textIndex) search(ctx context.Context, q store.Search, required []string, wanted func(*store.Row) bool, c *collector) (store.Results, error) {
	fresh := *c
	limit := 0
	if q.Prefix == "" && len(q.Metadata) == 0 {
		limit = max(q.Skip+q.Limit+1, 64)
	}
	ranked, more, err := x.takeAll(ctx, q, required, limit, wanted, c)
	if err == nil && more && ranked.Partial() { // entries that were removed meanwhile
		*c = fresh
		ranked, _, err = x.takeAll(ctx, q, required, 0, wanted, c)
	}
	if err != nil {
		return store.Results{}, err
	}
	return store.Results{Found: c.found, More: c.more, Cut: ranked.Cut()}, nil
}

// takeAll adds the entries of at most limit hits (0 = all), and reports whether there can be more.
func (x *textIndex) takeAll(ctx context.Context, q store.Search, required []string, limit int, wanted func(*store.Row) bool, c *collector) (*fulltext.Ranked, bool, error) {
	ranked, err := x.rank(ctx, q, required, limit)
	if err != nil {
		return nil, false, err
	}
	var batch []fulltext.Hit
	size := min(q.Skip+q.Limit+1, batchRows)
	for hit := range ranked.All() {
		if batch = append(batch, hit); len(batch) < size {
			continue
		}
		if more, err := x.take(ctx, q, batch, wanted, c); err != nil || !more {
			return ranked, more, err
		}
		batch, size = batch[:0], batchRows
	}
	more, err := x.take(ctx, q, batch, wanted, c)
	return ranked, more, err
}

// rank searches the index for at most limit hits (0 = all), and once more after rebuilding it if its files are damaged.
func (x *textIndex) rank(ctx context.Context, q store.Search, required []string, limit int) (*fulltext.Ranked, error) {
	for try := 0; ; try++ {
		index, err := x.current(ctx)
		if err != nil {
			return nil, err
		}
		ranked, err := index.Search(ctx, q.Text, fulltext.SearchOptions{Tag: tag(q.Namespace), Require: required, Limit: limit})
		if try > 0 || !errors.Is(err, fulltext.ErrCorrupt) {
			return ranked, err
		}
		if err := x.discard(index); err != nil {
			return nil, err
		}
	}
}

// take adds the entries of hits that match the query, and reports whether there can be more.
func (x *textIndex) take(ctx context.Context, q store.Search, hits []fulltext.Hit, wanted func(*store.Row) bool, c *collector) (bool, error) {
	if len(hits) == 0 {
		return true, nil
	}
	ids := make([]int64, len(hits))
	for i, hit := range hits {
		ids[i] = hit.ID
	}
	rows, err := x.m.driver.Get(ctx, store.RowQuery{Feed: store.EntryFeed, IDs: ids, NoBody: q.KeysOnly})
	if err != nil {
		return false, err
	}
	byID := make(map[int64]*store.Row, len(rows))
	for i := range rows {
		byID[rows[i].ID] = &rows[i]
	}
	for _, hit := range hits {
		r := byID[hit.ID]
		if r == nil || r.Deleted || r.Damaged != nil || x.m.expired(r) || r.Space != q.Namespace || !strings.HasPrefix(r.Key, q.Prefix) || !wanted(r) {
			continue
		}
		if more, err := c.add(ctx, x.m, r, hit.Score); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

func (x *textIndex) statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	index, err := x.current(ctx)
	if err != nil {
		return fulltext.Statistics{}, err
	}
	return index.Statistics(ctx, text)
}

// current returns the index with all changes that were acknowledged before.
func (x *textIndex) current(ctx context.Context) (*fulltext.Index, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, errClosed()
	}
	s, err := x.m.driver.State(ctx, store.EntryFeed)
	if err != nil {
		return nil, err
	}
	if x.index != nil && (s.Identity != x.identity || s.Last < x.last) {
		if err := x.reset(); err != nil {
			return nil, err
		}
	}
	if x.index == nil {
		if err := x.open(ctx, s); err != nil {
			return nil, err
		}
	}
	if x.last < s.Last {
		if err := x.catchUp(ctx); err != nil {
			return nil, fmt.Errorf("bring the text index up to date: %w", err)
		}
	}
	return x.index, nil
}

func (x *textIndex) reset() error {
	index := x.index
	x.index, x.last = nil, 0
	return errors.Join(index.Reset(), index.Close())
}

// discard makes a damaged index empty, unless it was replaced.
func (x *textIndex) discard(index *fulltext.Index) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.index != index {
		return nil
	}
	return x.reset()
}

func (x *textIndex) open(ctx context.Context, s store.FeedState) error {
	readOnly := x.m.ReadOnly != "" || !x.files.MayWrite(ctx)
	index, err := fulltext.OpenFolder(folder{x.files}, fulltext.Options{Language: x.m.Language, ReadOnly: readOnly})
	if err != nil {
		return tea.Errorf(tea.ValidationError, "open the text index: %w", err)
	}
	if lost := index.Lost(); lost != nil && !errors.Is(lost, fs.ErrNotExist) {
		x.m.Logger.Warn("the text index is rebuilt", "reason", lost.Error())
	}
	if why := index.Outdated(); why != nil {
		x.m.Logger.Warn("the text index is rewritten in the background", "reason", why.Error())
	}
	if w := index.Watermark(); w > s.Last || w < s.Forgotten {
		if err := index.Reset(); err != nil {
			return errors.Join(err, index.Close())
		}
	}
	x.index, x.identity = index, s.Identity
	x.last, x.flushed = index.Watermark(), index.Watermark()
	return nil
}

// catchUp puts the rows that have changed into the index. It repeats until no row has changed meanwhile.
func (x *textIndex) catchUp(ctx context.Context) error {
	for {
		page, err := x.m.driver.Changes(ctx, store.RowChanges{Feed: store.EntryFeed, After: x.last, Limit: batchRows})
		if err != nil {
			return err
		}
		for i := range page.Rows {
			if err := x.change(&page.Rows[i]); err != nil {
				return err
			}
		}
		x.last = max(x.last, page.Last)
		if x.last-x.flushed >= flushEvery {
			x.flushed = x.last
			if err := x.index.Flush(); err != nil {
				x.warn(err)
			}
		}
		if !page.More {
			return nil
		}
	}
}

func (x *textIndex) change(r *store.Row) error {
	switch {
	case r.Damaged != nil: // List reports it
		return nil
	case r.Deleted:
		return x.index.Delete(r.ID, r.Seq)
	}
	return x.index.Put(fulltext.Document{ID: r.ID, Seq: r.Seq, Tag: tag(r.Space), Fields: longterm.Fields(r.Key, r.Body, r.Metadata)})
}

func (x *textIndex) warn(err error) {
	x.m.Logger.Warn("the text index cannot be written; the next start takes longer", "error", err.Error())
}

func (x *textIndex) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.index == nil {
		return nil
	}
	if err := x.index.Close(); err != nil {
		x.warn(err)
	}
	x.index = nil
	return nil
}

// tag is the tag of a namespace's entries in the index.
func tag(namespace string) string { return "/" + namespace }

// folder stores the files of an index in a driver.
type folder struct{ files store.FileStore }

var _ fulltext.Folder = folder{}

func (f folder) Read(name string) ([]byte, error) {
	return f.files.ReadFile(context.Background(), name)
}

func (f folder) Write(name string, data []byte) error {
	return f.files.WriteFile(context.Background(), name, data)
}

func (f folder) Remove(name string) error { return f.files.RemoveFile(context.Background(), name) }

func (f folder) List() ([]string, error) { return f.files.ListFiles(context.Background()) }
