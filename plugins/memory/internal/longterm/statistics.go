package longterm

import (
	"context"
	"errors"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// Statistics are those of the live entries for a query, so that other texts
// can be ranked together with them.
func (m *Memory) Statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	found, err := m.statistics(ctx, text)
	if !errors.Is(err, fulltext.ErrCorrupt) && !errors.Is(err, fulltext.ErrClosed) {
		return found, err
	}
	if _, err := m.rank(ctx, store.Search{Text: text}); err != nil { // it rebuilds a broken index
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
