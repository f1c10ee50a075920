package records

import (
	"context"
	"errors"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func (s *entries) Search(ctx context.Context, q store.Search) (store.Results, error) {
	if err := errors.Join(s.check(ctx), longterm.CheckPrefix(q.Namespace, q.Prefix)); err != nil {
		return store.Results{}, err
	}
	c := &collector{skip: q.Skip, limit: q.Limit, maxBytes: q.MaxBytes, keysOnly: q.KeysOnly}
	required := longterm.Required(q.Metadata)
	wanted := func(r *store.Row) bool { return filter.Matches([]byte(r.Metadata), q.Metadata) }
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
	return s.index.search(ctx, q, required, wanted, c)
}

// ask searches with the driver. If the filter can reject rows, it reads more than the limit, and four times as many
// with each further page.
func (s *entries) ask(ctx context.Context, d store.TextSearcher, q store.Search, required []string, wanted func(*store.Row) bool, c *collector) (store.Results, error) {
	const filtered, most = 64, 4096
	read := store.TextQuery{
		Space: q.Namespace, Text: q.Text, Prefix: q.Prefix, Filter: q.Metadata, Limit: max(q.Skip+q.Limit, 0) + 1, MaxBytes: q.MaxBytes, NoBody: q.KeysOnly, Live: s.m.micro(), Require: required,
	}
	filterer, ok := d.(store.TextFilterer)
	filters := ok && filterer.FiltersText()
	if len(q.Metadata) > 0 && !filters {
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
			r := &page.Rows[i]
			if s.m.expired(r) || !filters && !wanted(r) {
				continue
			}
			if more, err := c.add(ctx, s.m, r, page.Scores[i]); err != nil {
				return store.Results{}, err
			} else if !more {
				break
			}
		}
		if results.Found, results.More = c.found, c.more; c.more || !page.More || len(page.Rows) == 0 {
			return results, nil
		}
		read.Offset, read.Limit = read.Offset+len(page.Rows), 4*read.Limit
	}
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
	return s.index.statistics(ctx, text)
}

func (m *memory) unsupportedText() error {
	return store.Unsupported(m.Engine, store.FullText, "search without a text, or use settings.memory.engine "+store.EnginesWith(store.FullText))
}
