package longterm

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/filter"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// searchBatch is how many rows are read at least for the hits of the index.
const searchBatch = 32

// Search gives the live entries that fit the query, best first.
func (m *Memory) Search(ctx context.Context, query store.Search) ([]store.Found, error) {
	if !utf8.ValidString(query.Prefix) {
		return nil, tea.Errorf(tea.ValidationError, "the prefix %q is not valid UTF-8", query.Prefix)
	}
	if query.Limit < 1 {
		return nil, nil
	}
	if strings.TrimSpace(query.Text) == "" {
		return m.searchKeys(ctx, query)
	}
	ranked, err := m.rank(ctx, query.Text)
	if err != nil {
		return nil, err
	}
	var results []store.Found
	var batch []fulltext.Hit
	for hit := range ranked.All() {
		if batch = append(batch, hit); len(batch) < max(query.Limit, searchBatch) {
			continue
		}
		if results, err = m.take(ctx, query, batch, results); err != nil || len(results) == query.Limit {
			return results, err
		}
		batch = batch[:0]
	}
	return m.take(ctx, query, batch, results)
}

// rank asks the index, and once more where its files turn out to be broken.
func (m *Memory) rank(ctx context.Context, text string) (*fulltext.Ranked, error) {
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
		ranked, err := index.Search(ctx, text, fulltext.SearchOptions{})
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

// readable says that a search can do without a write that failed: no expired
// entry is among its results all the same, it only counts in their scores.
func (m *Memory) readable(err error) bool {
	e := new(tea.Error)
	if !errors.As(err, &e) || (e.Type != tea.ConnectionError && e.Type != tea.CircuitOpen) {
		return false
	}
	m.o.Logger.Warn("what has expired cannot be taken out of the text index", "error", err.Error())
	return true
}

// take adds the entries of these hits that fit the query to the results.
func (m *Memory) take(ctx context.Context, query store.Search, hits []fulltext.Hit, results []store.Found) ([]store.Found, error) {
	if len(hits) == 0 {
		return results, nil
	}
	args := make([]any, len(hits))
	for i, hit := range hits {
		args[i] = hit.ID
	}
	found, err := m.read(ctx, "SELECT "+columns+" FROM ltm WHERE id IN (?"+strings.Repeat(", ?", len(args)-1)+")", args...)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*entry, len(found))
	for i := range found {
		byID[found[i].ID] = &found[i]
	}
	for _, hit := range hits {
		e := byID[hit.ID]
		if e == nil || m.expired(*e) || !strings.HasPrefix(e.Key, query.Prefix) || !filter.Matches(e.Metadata, query.Metadata) {
			continue
		}
		switch err := m.fillListed(ctx, e); {
		case errors.Is(err, errGone):
			continue
		case err != nil:
			return nil, err
		}
		if results = append(results, store.Found{Memory: e.Memory, Score: hit.Score}); len(results) == query.Limit {
			break
		}
	}
	return results, nil
}

// searchKeys is a search without a text: entries in the order of their keys.
func (m *Memory) searchKeys(ctx context.Context, query store.Search) ([]store.Found, error) {
	var results []store.Found
	after := ""
	for {
		limit := max(query.Limit, searchBatch)
		page, err := m.List(ctx, store.List{Prefix: query.Prefix, After: after, Limit: limit})
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			after = e.Key
			if !filter.Matches(e.Metadata, query.Metadata) {
				continue
			}
			if results = append(results, store.Found{Memory: e}); len(results) == query.Limit {
				return results, nil
			}
		}
		if len(page) < limit {
			return results, nil
		}
	}
}
