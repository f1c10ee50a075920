package remotesqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Search returns the live entries that match the query, best first.
func (m *Memory) Search(ctx context.Context, q store.Search) (store.Results, error) {
	if strings.TrimSpace(q.Text) == "" {
		return m.walk(ctx, q)
	}
	if err := m.closed.check(ctx); err != nil {
		return store.Results{}, err
	}
	if err := longterm.CheckPrefix(q.Namespace, q.Prefix); err != nil {
		return store.Results{}, err
	}
	if err := m.hasText(ctx); err != nil {
		return store.Results{}, err
	}
	parsed := m.d.terms.Query(q.Text)
	match := matchOf(parsed)
	if match == "" || q.Limit < 1 {
		return store.Results{Cut: parsed.Cut}, nil
	}
	begins, args := prefixed("l.key", escape(q.Prefix), []string{match, q.Namespace, integer(m.d.micro())})
	offset := 0
	results, err := m.page(ctx, q, func(_ *entry, limit int) ([]entry, []float64, error) {
		rows, err := m.d.query(ctx, fmt.Sprintf(`SELECT %s, bm25(ltm_text) FROM ltm_text JOIN ltm AS l ON l.id = ltm_text.rowid
			WHERE ltm_text MATCH ?1 AND l.namespace = ?2 AND (l.expires_at IS NULL OR l.expires_at > CAST(?3 AS INTEGER))%s ORDER BY bm25(ltm_text), l.id LIMIT %d OFFSET %d`,
			entryColumns, begins, limit, offset), args...)
		offset += len(rows)
		entries, scores := make([]entry, len(rows)), make([]float64, len(rows))
		for i, row := range rows {
			entries[i] = toEntry(row)
			if score, ok := row[len(row)-1].(float64); ok {
				scores[i] = -score
			}
		}
		return entries, scores, err
	})
	results.Cut = parsed.Cut
	return results, err
}

// hasText returns an error if the server has no full-text search.
func (m *Memory) hasText(ctx context.Context) error {
	if err := m.d.prepare(ctx); err != nil {
		return err
	}
	if !m.d.fullText {
		return store.Unsupported(m.d.name, store.FullText, "use a server with SQLite's module fts5, or search without a text")
	}
	return nil
}

// matchOf returns the expression of FTS5 for a query, "" if it finds nothing.
func matchOf(q fulltext.Query) string {
	var words []string
	for _, stems := range q.Words {
		for _, stem := range stems {
			words = append(words, "{stems spelled} : "+quoteAll([]string{stem}))
		}
	}
	for _, prefix := range q.Prefixes {
		words = append(words, "forms : "+quoteAll([]string{prefix})+" *")
	}
	if len(words) == 0 {
		return ""
	}
	all := []string{"(" + strings.Join(words, " OR ") + ")"}
	for _, phrase := range q.Phrases {
		all = append(all, "stems : "+quoteAll(phrase))
	}
	return strings.Join(all, " AND ")
}

const (
	// pageRows is the number of rows that a page reads first, if a filter can leave
	// some out; each further request reads four times as many.
	pageRows = 64
	maxRows  = 4096
)

// page reads rows with next until the page of a search is complete. next gets the
// last entry that it returned, and returns fewer than limit entries at the end.
func (m *Memory) page(ctx context.Context, q store.Search, next func(last *entry, limit int) ([]entry, []float64, error)) (store.Results, error) {
	limit := q.Skip + q.Limit + 1
	if len(q.Metadata) > 0 {
		limit = max(limit, pageRows)
	}
	limit = min(limit, maxRows)
	var found []*entry
	var scores []float64
	var last *entry
	more, bytes := false, int64(0)
	for complete := false; !complete; limit = min(4*limit, maxRows) {
		entries, ranks, err := next(last, limit)
		if err != nil {
			return store.Results{}, err
		}
		complete = len(entries) < limit
		for i := range entries {
			e := &entries[i]
			last = e
			if !filter.Matches(e.Metadata, q.Metadata) {
				continue
			}
			if q.Skip > 0 {
				q.Skip--
				continue
			}
			if bytes += e.bytes(q.KeysOnly); len(found) == q.Limit || q.MaxBytes > 0 && bytes > q.MaxBytes && len(found) > 0 {
				more, complete = true, true
				break
			}
			found, scores = append(found, e), append(scores, ranks[i])
		}
	}
	if !q.KeysOnly {
		if err := m.fill(ctx, found); err != nil {
			return store.Results{}, err
		}
	}
	results := store.Results{More: more, Found: make([]store.Found, len(found))}
	for i, e := range found {
		if q.KeysOnly {
			e.Value, e.Metadata = nil, nil
		}
		results.Found[i] = store.Found{Memory: e.Memory, Score: scores[i]}
	}
	return results, nil
}

// bytes is the size of the entry in a result.
func (e *entry) bytes(keysOnly bool) int64 {
	one := store.Memory{Key: e.Key}
	if keysOnly {
		return one.JSONBytes()
	}
	return one.JSONBytes() + e.size + int64(len(e.Metadata))
}
