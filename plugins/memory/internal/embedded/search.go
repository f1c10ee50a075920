package embedded

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// searchBatch is the minimum number of rows read for hits of the index.
const searchBatch = 32

// largestBatch is the maximum number of rows read for hits of the index.
const largestBatch = 4096

// hits collects the entries of a search.
type hits struct {
	*page
	offset int
	scores []float64
}

// searchText returns the live entries that match the query, best first.
func (m *entries) searchText(ctx context.Context, q store.TextQuery) (store.TextPage, error) {
	if q.Limit < 1 {
		return store.TextPage{}, nil
	}
	below, err := m.below(ctx, q)
	if err != nil {
		return store.TextPage{}, err
	}
	first := max(q.Offset+q.Limit+1, searchBatch)
	if len(q.Filter) > 0 {
		first = rareAfter
	}
	limit := first
	if below != nil {
		limit = 0
	}
	ranked, err := m.rank(ctx, q, limit)
	if err != nil {
		return store.TextPage{}, err
	}
	if below != nil {
		ranked.Keep(below.has)
	}
	h := &hits{page: pageOf(q.Limit, q.MaxBytes), offset: q.Offset}
	err = m.takeAll(ctx, q, slices.Values(ranked.Top(first)), h)
	if err == nil && !h.More && (ranked.Partial() || ranked.Len() > first) {
		h = &hits{page: pageOf(q.Limit, q.MaxBytes), offset: q.Offset}
		ranked, err = m.takeRare(ctx, q, ranked, h)
	}
	if err != nil {
		return store.TextPage{}, err
	}
	return store.TextPage{Rows: h.Rows, Scores: h.scores, More: h.More, Cut: ranked.Cut()}, nil
}

// takeRare adds the matching hits to the page if few of the first hits have matched. The others are selected by the fields in
// memory before their rows are read.
func (m *entries) takeRare(ctx context.Context, q store.TextQuery, ranked *fulltext.Ranked, h *hits) (_ *fulltext.Ranked, err error) {
	if ranked.Partial() {
		if ranked, err = m.rank(ctx, q, 0); err != nil {
			return nil, err
		}
	}
	if len(q.Filter) > 0 {
		passing, err := m.passing(ctx, q.Filter)
		if err != nil {
			return nil, err
		}
		ranked.Keep(passing.has)
	}
	return ranked, m.takeAll(ctx, q, ranked.All(), h)
}

// takeAll adds the matching hits to the page.
func (m *entries) takeAll(ctx context.Context, q store.TextQuery, all iter.Seq[fulltext.Hit], h *hits) error {
	// Each round reads more hits, in case few of them match.
	size := max(q.Offset+q.Limit+1, searchBatch)
	var batch []fulltext.Hit
	for hit := range all {
		if batch = append(batch, hit); len(batch) < size {
			continue
		}
		if err := m.take(ctx, q, batch, h); h.More || err != nil {
			return err
		}
		batch, size = batch[:0], min(4*size, max(size, largestBatch))
	}
	return m.take(ctx, q, batch, h)
}

// rareAfter is the number of hits after which matches of the filter count as rare. All
// entries that match the filter are then selected from the fields in memory.
const rareAfter = 128

// selection is a sorted set of ids.
type selection []int64

func (s selection) has(id int64) bool {
	_, found := slices.BinarySearch(s, id)
	return found
}

// passing returns the entries whose metadata match the filter.
func (m *entries) passing(ctx context.Context, wanted filter.Filter) (selection, error) {
	ids, err := m.fields.Matching(ctx, wanted, func(ctx context.Context) (store.Rows, error) {
		return m.engine.Query(ctx, "SELECT id, metadata FROM ltm")
	})
	slices.Sort(ids)
	return ids, err
}

// below returns the entries with the query's prefix. It returns nil if the query has no
// prefix, or if there are so many entries that hits are not rare.
func (m *entries) below(ctx context.Context, q store.TextQuery) (selection, error) {
	if q.Prefix == "" {
		return nil, nil
	}
	rows, err := m.engine.Query(ctx, "SELECT id, key FROM ltm WHERE key >= ? ORDER BY key LIMIT ?", rowKey(q.Space, q.Prefix), largestBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	ids := selection{}
	for rows.Next() {
		var id int64
		var row string
		if err := rows.Scan(&id, &row); err != nil {
			return nil, err
		}
		if namespace, key := splitRowKey(row); namespace != q.Space || !strings.HasPrefix(key, q.Prefix) {
			break
		}
		ids = append(ids, id)
	}
	if len(ids) == largestBatch {
		return nil, rows.Err()
	}
	slices.Sort(ids)
	return ids, rows.Err()
}

// rank searches the index for at most limit hits (0 = all). If the index is damaged, it is rebuilt and searched again.
func (m *entries) rank(ctx context.Context, q store.TextQuery, limit int) (*fulltext.Ranked, error) {
	for try := 0; ; try++ {
		index, err := m.textIndex(ctx)
		if err != nil {
			return nil, err
		}
		if err := m.expire(ctx); err != nil && !m.readable(err) {
			return nil, err
		}
		if err := m.backlog.wait(ctx); err != nil {
			return nil, err
		}
		ranked, err := index.Search(ctx, q.Text, fulltext.SearchOptions{Tag: tag(q.Space), Require: q.Require, Limit: limit})
		switch {
		case err == nil || try > 0:
			return ranked, err
		case errors.Is(err, fulltext.ErrCorrupt):
			if err := index.Reset(); err != nil && !errors.Is(err, fulltext.ErrClosed) {
				return nil, err
			}
			m.dropIndex(index, err)
		case !errors.Is(err, fulltext.ErrClosed):
			return nil, err
		}
	}
}

// readable reports whether a search can continue although expired entries could not be removed. They affect scores but
// not the results.
func (m *entries) readable(err error) bool {
	e := new(tea.Error)
	if !errors.As(err, &e) || (e.Type != tea.ConnectionError && e.Type != tea.CircuitOpen) {
		return false
	}
	m.Logger.Warn("expired entries cannot be removed from the text index", "error", err.Error())
	return true
}

// take adds the entries of hits that match the query to the page.
func (m *entries) take(ctx context.Context, q store.TextQuery, batch []fulltext.Hit, h *hits) error {
	fits := func(r *store.Row) bool {
		return r != nil && (r.Expires == 0 || r.Expires > q.Live) && r.Space == q.Space && strings.HasPrefix(r.Key, q.Prefix) && filter.Matches([]byte(r.Metadata), q.Filter)
	}
	if q.Prefix != "" || len(q.Filter) > 0 { // the values of the others need not be read
		found, err := m.byID(ctx, true, batch)
		if err != nil {
			return err
		}
		batch = slices.DeleteFunc(batch, func(hit fulltext.Hit) bool { return !fits(found[hit.ID]) })
	}
	for part := range slices.Chunk(batch, max(h.offset+h.limit-len(h.Rows)+1, searchBatch)) {
		found, err := m.byID(ctx, q.NoBody, part)
		if err != nil {
			return err
		}
		for _, hit := range part {
			r := found[hit.ID]
			if !fits(r) {
				continue
			}
			if h.offset > 0 {
				h.offset--
				continue
			}
			if h.add(r); h.More {
				return nil
			}
			h.scores = append(h.scores, hit.Score)
		}
	}
	return nil
}

// byID reads the entries of these hits.
func (m *entries) byID(ctx context.Context, noBody bool, batch []fulltext.Hit) (map[int64]*store.Row, error) {
	ids := make([]int64, len(batch))
	for i, hit := range batch {
		ids[i] = hit.ID
	}
	rows, err := m.get(ctx, store.RowQuery{IDs: ids, NoBody: noBody})
	byID := make(map[int64]*store.Row, len(rows))
	for i := range rows {
		byID[rows[i].ID] = &rows[i]
	}
	return byID, err
}

// Statistics returns the statistics of the live entries for a query, with which other
// texts are ranked together with the entries.
func (m *entries) Statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	found, err := m.statistics(ctx, text)
	if !errors.Is(err, fulltext.ErrCorrupt) && !errors.Is(err, fulltext.ErrClosed) {
		return found, err
	}
	if _, err := m.rank(ctx, store.TextQuery{Text: text}, 1); err != nil { // rebuilds a damaged index
		return found, err
	}
	return m.statistics(ctx, text)
}

func (m *entries) statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	index, err := m.textIndex(ctx)
	if err != nil {
		return fulltext.Statistics{}, err
	}
	if err := m.expire(ctx); err != nil {
		return fulltext.Statistics{}, err
	}
	if err := m.backlog.wait(ctx); err != nil {
		return fulltext.Statistics{}, err
	}
	return index.Statistics(ctx, text)
}
