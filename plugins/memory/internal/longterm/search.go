package longterm

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
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

// Search returns the live entries that match the query, best first.
func (m *Memory) Search(ctx context.Context, query store.Search) (store.Results, error) {
	if err := checkPrefix(query.Namespace, query.Prefix); err != nil || query.Limit < 1 {
		return store.Results{}, err
	}
	fresh := page{skip: query.Skip, limit: query.Limit, maxBytes: query.MaxBytes, keysOnly: query.KeysOnly}
	p := fresh
	if strings.TrimSpace(query.Text) == "" {
		p.skip = 0
		err := m.walk(ctx, store.List{Namespace: query.Namespace, Prefix: query.Prefix, After: query.After, Limit: query.Limit}, query.Metadata, &p)
		return store.Results{Found: p.found, More: p.more}, err
	}
	below, err := m.below(ctx, query)
	if err != nil {
		return store.Results{}, err
	}
	first := max(query.Skip+query.Limit+1, searchBatch)
	if len(query.Metadata) > 0 {
		first = rareAfter
	}
	limit := first
	if below != nil {
		limit = 0
	}
	ranked, err := m.rank(ctx, query, limit)
	if err != nil {
		return store.Results{}, err
	}
	if below != nil {
		ranked.Keep(below.has)
	}
	complete, err := m.takeAll(ctx, query, slices.Values(ranked.Top(first)), &p)
	if err == nil && !complete && (ranked.Partial() || ranked.Len() > first) {
		p = fresh
		ranked, err = m.takeRare(ctx, query, ranked, &p)
	}
	if err != nil {
		return store.Results{}, err
	}
	return store.Results{Found: p.found, More: p.more, Cut: ranked.Cut()}, nil
}

// takeRare adds the matching hits to the page if few of the first hits have matched. The others are selected by the fields in
// memory before their rows are read.
func (m *Memory) takeRare(ctx context.Context, query store.Search, ranked *fulltext.Ranked, p *page) (_ *fulltext.Ranked, err error) {
	if ranked.Partial() {
		if ranked, err = m.rank(ctx, query, 0); err != nil {
			return nil, err
		}
	}
	if len(query.Metadata) > 0 {
		passing, err := m.passing(ctx, query.Metadata)
		if err != nil {
			return nil, err
		}
		ranked.Keep(passing.has)
	}
	_, err = m.takeAll(ctx, query, ranked.All(), p)
	return ranked, err
}

// takeAll adds the matching hits to the page, and reports whether the page is full.
func (m *Memory) takeAll(ctx context.Context, query store.Search, hits iter.Seq[fulltext.Hit], p *page) (complete bool, err error) {
	// Each round reads more hits, in case few of them match.
	size := max(query.Skip+query.Limit+1, searchBatch)
	var batch []fulltext.Hit
	for hit := range hits {
		if batch = append(batch, hit); len(batch) < size {
			continue
		}
		if complete, err := m.take(ctx, query, batch, p); complete || err != nil {
			return complete, err
		}
		batch, size = batch[:0], min(4*size, max(size, largestBatch))
	}
	return m.take(ctx, query, batch, p)
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
func (m *Memory) passing(ctx context.Context, wanted filter.Filter) (selection, error) {
	ids, err := m.fields.Matching(ctx, wanted, func(ctx context.Context) (store.Rows, error) {
		return m.o.Engine.Query(ctx, "SELECT id, metadata FROM ltm")
	})
	slices.Sort(ids)
	return ids, err
}

// below returns the entries with the query's prefix. It returns nil if the query has no
// prefix, or if there are so many entries that hits are not rare.
func (m *Memory) below(ctx context.Context, query store.Search) (selection, error) {
	if query.Prefix == "" {
		return nil, nil
	}
	rows, err := m.o.Engine.Query(ctx, "SELECT id, key FROM ltm WHERE key >= ? ORDER BY key LIMIT ?", rowKey(query.Namespace, query.Prefix), largestBatch)
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
		if namespace, key := splitRowKey(row); namespace != query.Namespace || !strings.HasPrefix(key, query.Prefix) {
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

// exactBelow is the magnitude below which an integer and an equal float have the same
// digits.
const exactBelow = 1_000_000

// required returns texts that every entry that matches the filter contains, since the
// values of metadata are indexed. The filter is still evaluated.
func required(wanted filter.Filter) (texts []string) {
	for _, c := range wanted {
		want, _ := c.Value()
		switch want := want.(type) {
		case string:
			texts = append(texts, want)
		case int64:
			if -exactBelow < want && want < exactBelow {
				texts = append(texts, strconv.FormatInt(want, 10))
			}
		}
	}
	return texts
}

// rank searches the index for at most limit hits (0 = all). If the index is damaged, it is rebuilt and searched again.
func (m *Memory) rank(ctx context.Context, query store.Search, limit int) (*fulltext.Ranked, error) {
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
		ranked, err := index.Search(ctx, query.Text, fulltext.SearchOptions{Tag: tag(query.Namespace), Require: required(query.Metadata), Limit: limit})
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
func (m *Memory) readable(err error) bool {
	e := new(tea.Error)
	if !errors.As(err, &e) || (e.Type != tea.ConnectionError && e.Type != tea.CircuitOpen) {
		return false
	}
	m.o.Logger.Warn("expired entries cannot be removed from the text index", "error", err.Error())
	return true
}

// take adds the entries of hits that match the query to the page.
func (m *Memory) take(ctx context.Context, query store.Search, hits []fulltext.Hit, p *page) (complete bool, err error) {
	fits := func(e *entry) bool {
		return e != nil && !m.expired(*e) && e.Namespace == query.Namespace && strings.HasPrefix(e.Key, query.Prefix) && filter.Matches(e.Metadata, query.Metadata)
	}
	if query.Prefix != "" || len(query.Metadata) > 0 { // the values of the others need not be read
		found, err := m.byID(ctx, withoutValue, hits)
		if err != nil {
			return false, err
		}
		hits = slices.DeleteFunc(hits, func(hit fulltext.Hit) bool { return !fits(found[hit.ID]) })
	}
	for part := range slices.Chunk(hits, max(p.skip+p.limit-len(p.found)+1, searchBatch)) {
		found, err := m.byID(ctx, columns, part)
		if err != nil {
			return false, err
		}
		for _, hit := range part {
			e := found[hit.ID]
			if !fits(e) {
				continue
			}
			if complete, err := p.add(ctx, m, e, hit.Score); complete || err != nil {
				return complete, err
			}
		}
	}
	return false, nil
}

// byID reads the entries of these hits.
func (m *Memory) byID(ctx context.Context, columns string, hits []fulltext.Hit) (map[int64]*entry, error) {
	if len(hits) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(hits))
	for i, hit := range hits {
		ids[i] = hit.ID
	}
	list, args := store.InList(ids)
	found, err := m.read(ctx, columns, "WHERE id IN "+list, args...)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*entry, len(found))
	for i := range found {
		byID[found[i].ID] = &found[i]
	}
	return byID, nil
}

// Statistics returns the statistics of the live entries for a query, with which other
// texts are ranked together with the entries.
func (m *Memory) Statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	found, err := m.statistics(ctx, text)
	if !errors.Is(err, fulltext.ErrCorrupt) && !errors.Is(err, fulltext.ErrClosed) {
		return found, err
	}
	if _, err := m.rank(ctx, store.Search{Text: text}, 1); err != nil { // rebuilds a damaged index
		return found, err
	}
	return m.statistics(ctx, text)
}

func (m *Memory) statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
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
