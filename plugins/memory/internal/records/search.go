package records

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func (s *entries) Search(ctx context.Context, q store.Search) (store.Results, error) {
	if err := errors.Join(s.check(ctx), longterm.CheckPrefix(q.Namespace, q.Prefix)); err != nil {
		return store.Results{}, err
	}
	c := &collector{skip: q.Skip, limit: q.Limit, maxBytes: q.MaxBytes}
	required := longterm.Required(q.Metadata)
	wanted := func(r *store.Row) bool {
		return len(q.Metadata) == 0 || filter.Matches([]byte(r.Metadata), q.Metadata)
	}
	searcher, searches := s.m.driver.(store.TextSearcher)
	switch withText := strings.TrimSpace(q.Text) != ""; {
	case withText && searches:
		return s.ask(ctx, searcher, q, required, wanted, c)
	case withText && s.index == nil:
		return store.Results{}, s.m.unsupportedText()
	case q.Limit < 1:
		return store.Results{}, nil
	case !withText:
		c.skip = 0
		l := store.List{Namespace: q.Namespace, Prefix: q.Prefix, After: q.After, Limit: q.Limit, KeysOnly: q.KeysOnly, MaxBytes: q.MaxBytes}
		err := s.walk(ctx, l, required, wanted, c)
		return store.Results{Found: c.found, More: c.more}, err
	}
	results := store.Results{}
	err := s.withIndex(ctx, func(index *fulltext.Index) (err error) {
		fresh := *c
		results, err = s.searchIndex(ctx, index, q, required, wanted, &fresh)
		return err
	})
	return results, err
}

// ask searches with the driver. If the filter can reject rows, it reads more than the limit, and four times as many
// with each further page.
func (s *entries) ask(ctx context.Context, d store.TextSearcher, q store.Search, required []string, wanted func(*store.Row) bool, c *collector) (store.Results, error) {
	const filtered, most = 64, 4096
	read := store.TextQuery{
		Space: q.Namespace, Text: q.Text, Prefix: q.Prefix, Limit: max(q.Skip+q.Limit, 0) + 1, MaxBytes: q.MaxBytes, NoBody: q.KeysOnly, Live: s.m.micro(), Require: required,
	}
	if len(q.Metadata) > 0 {
		read.Limit = max(read.Limit, filtered)
	} else {
		read.Offset, read.Limit, c.skip = max(q.Skip, 0), max(q.Limit, 0)+1, 0
	}
	for {
		read.Limit = min(read.Limit, most)
		page, err := d.SearchText(ctx, read)
		if err != nil || q.Limit < 1 {
			return store.Results{Cut: page.Cut}, err
		}
		results := store.Results{Cut: page.Cut}
		for i := range page.Rows {
			if r := &page.Rows[i]; !s.m.expired(r) && wanted(r) && !c.add(toMemory(r, q.KeysOnly), page.Scores[i]) {
				break
			}
		}
		if results.Found, results.More = c.found, c.more; c.more || !page.More || len(page.Rows) == 0 {
			return results, nil
		}
		read.Offset, read.Limit = read.Offset+len(page.Rows), 4*read.Limit
	}
}

// index is a text index of the entries.
type index interface {
	// Current returns the index with all changes that were acknowledged before.
	Current(ctx context.Context) (*fulltext.Index, error)
	// Discard empties a damaged index.
	Discard(index *fulltext.Index) error
}

// Indexer is a Driver with a text index of its own, and the metadata of its entries in
// memory. A set of ids is sorted.
type Indexer interface {
	index
	// Below returns the ids of the entries with a prefix, nil if there are too many to
	// choose hits by them.
	Below(ctx context.Context, space, prefix string) ([]int64, error)
	// Matching returns the ids of the entries whose metadata match a filter.
	Matching(ctx context.Context, wanted filter.Filter) ([]int64, error)
}

// withIndex calls fn with the index, and again if its files are damaged or it was closed
// because of a failure.
func (s *entries) withIndex(ctx context.Context, fn func(index *fulltext.Index) error) error {
	for try := 0; ; try++ {
		index, err := s.index.Current(ctx)
		if err != nil {
			return err
		}
		err = fn(index)
		switch {
		case err == nil || try > 0:
			return err
		case errors.Is(err, fulltext.ErrCorrupt):
			if err := s.index.Discard(index); err != nil {
				return err
			}
		case !errors.Is(err, fulltext.ErrClosed):
			return err
		}
	}
}

// rareAfter is the number of hits after which matches of the filter count as rare, so that
// an Indexer selects all entries that match it.
const rareAfter = 128

// searchIndex adds the entries that the index finds to a page.
func (s *entries) searchIndex(ctx context.Context, index *fulltext.Index, q store.Search, required []string, wanted func(*store.Row) bool, c *collector) (store.Results, error) {
	ranked, err := index.Search(ctx, q.Text, fulltext.SearchOptions{Tag: longterm.Tag(q.Namespace), Require: required})
	if err != nil {
		return store.Results{}, err
	}
	indexer, _ := s.index.(Indexer)
	more := true
	if indexer != nil {
		if more, err = s.takeRare(ctx, indexer, ranked, q, wanted, c); err != nil {
			return store.Results{}, err
		}
	}
	if more {
		_, err = s.takeAll(ctx, q, ranked.All(), wanted, c)
	}
	return store.Results{Found: c.found, More: c.more, Cut: ranked.Cut()}, err
}

// takeRare removes the hits without the query's prefix and those that do not match its
// filter, if only few do. It reports whether hits are left to take.
func (s *entries) takeRare(ctx context.Context, indexer Indexer, ranked *fulltext.Ranked, q store.Search, wanted func(*store.Row) bool, c *collector) (more bool, err error) {
	keep := func(ids []int64) {
		ranked.Keep(func(id int64) bool {
			_, found := slices.BinarySearch(ids, id)
			return found
		})
	}
	if q.Prefix != "" {
		ids, err := indexer.Below(ctx, q.Namespace, q.Prefix)
		if err != nil {
			return false, err
		}
		if ids != nil {
			keep(ids)
		}
	}
	if len(q.Metadata) == 0 || ranked.Len() <= rareAfter {
		return true, nil
	}
	fresh := *c
	if more, err := s.takeAll(ctx, q, slices.Values(ranked.Top(rareAfter)), wanted, c); err != nil || !more {
		return false, err
	}
	ids, err := indexer.Matching(ctx, q.Metadata)
	keep(ids)
	*c = fresh
	return true, err
}

// takeAll adds the entries of hits that fit the query, and reports whether there can be
// more.
func (s *entries) takeAll(ctx context.Context, q store.Search, hits iter.Seq[fulltext.Hit], wanted func(*store.Row) bool, c *collector) (more bool, err error) {
	var batch []fulltext.Hit
	_, local := s.index.(Indexer)
	size := min(q.Skip+q.Limit+1, batchRows)
	if local {
		size = max(size, minTaken)
	}
	for hit := range hits {
		if batch = append(batch, hit); len(batch) < size {
			continue
		}
		if more, err = s.take(ctx, q, batch, wanted, c); err != nil || !more {
			return false, err
		}
		if batch = batch[:0]; local {
			size = min(4*size, maxTaken)
		} else {
			size = batchRows // with few requests
		}
	}
	return s.take(ctx, q, batch, wanted, c)
}

// take adds the entries of hits that fit the query, and reports whether there can be
// more. If most hits may not fit, an Indexer reads the values of those that do.
func (s *entries) take(ctx context.Context, q store.Search, hits []fulltext.Hit, wanted func(*store.Row) bool, c *collector) (bool, error) {
	fits := func(r *store.Row) bool {
		return r != nil && !r.Deleted && (r.Damaged == nil || r.ID != 0) && !s.m.expired(r) && r.Space == q.Namespace && strings.HasPrefix(r.Key, q.Prefix) && wanted(r)
	}
	_, local := s.index.(Indexer)
	size := max(len(hits), 1)
	if local {
		if q.Prefix != "" || len(q.Metadata) > 0 {
			found, err := s.byID(ctx, hits, true)
			if err != nil {
				return false, err
			}
			hits = slices.DeleteFunc(hits, func(hit fulltext.Hit) bool { return !fits(found[hit.ID]) })
		}
		size = max(c.skip+c.limit-len(c.found)+1, minTaken)
	}
	for part := range slices.Chunk(hits, size) {
		found, err := s.byID(ctx, part, q.KeysOnly)
		if err != nil {
			return false, err
		}
		for _, hit := range part {
			if r := found[hit.ID]; fits(r) && !c.add(toMemory(r, q.KeysOnly), hit.Score) {
				return false, nil
			}
		}
	}
	return true, nil
}

// An Indexer reads the rows of minTaken to maxTaken hits together.
const minTaken, maxTaken = 32, 4096

func (s *entries) byID(ctx context.Context, hits []fulltext.Hit, noBody bool) (map[int64]*store.Row, error) {
	if len(hits) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(hits))
	for i, hit := range hits {
		ids[i] = hit.ID
	}
	rows, err := s.m.driver.Get(ctx, store.RowQuery{Feed: store.EntryFeed, IDs: ids, NoBody: noBody})
	byID := make(map[int64]*store.Row, len(rows))
	for i := range rows {
		byID[rows[i].ID] = &rows[i]
	}
	return byID, err
}

// Statistics returns the entries' statistics for a query, so that other texts can be ranked with the entries.
func (s *entries) Statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	if err := s.check(ctx); err != nil {
		return fulltext.Statistics{}, err
	}
	if d, ok := s.m.driver.(interface {
		Statistics(ctx context.Context, text string) (fulltext.Statistics, error)
	}); ok {
		return d.Statistics(ctx, text)
	}
	if s.index == nil {
		return fulltext.Statistics{}, s.m.unsupportedText()
	}
	found := fulltext.Statistics{}
	err := s.withIndex(ctx, func(index *fulltext.Index) (err error) {
		found, err = index.Statistics(ctx, text)
		return err
	})
	return found, err
}

func (m *memory) unsupportedText() error {
	return store.Unsupported(m.Engine, store.FullText, "search without a text, or use settings.memory.engine "+store.EnginesWith(store.FullText))
}

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

// Current returns the index with all changes that were acknowledged before.
func (x *textIndex) Current(ctx context.Context) (*fulltext.Index, error) {
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

// Discard makes a damaged index empty, unless it was replaced.
func (x *textIndex) Discard(index *fulltext.Index) error {
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
	return x.index.Put(fulltext.Document{ID: r.ID, Seq: r.Seq, Tag: longterm.Tag(r.Space), Fields: longterm.Fields(r.Key, string(r.Body), r.Metadata)})
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
