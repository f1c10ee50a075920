package remotesqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// stemmed is the token that marks rows with the current stems. Older versions of tea do not write it.
var stemmed = "__" + strings.ReplaceAll(fulltext.StemsVersion, ".", "_")

func (d *database) SearchText(ctx context.Context, q store.TextQuery) (page store.TextPage, err error) {
	if err := d.hasText(ctx); err != nil {
		return page, err
	}
	parsed := d.terms.Query(q.Text)
	page.Cut = parsed.Cut
	match := matchOf(parsed)
	if match == "" {
		return page, nil
	}
	if older := matchOf(fulltext.Query{Prefixes: d.terms.Beginnings(q.Text)}); older != "" {
		match = "(" + match + ") OR (" + older + " NOT forms : " + stemmed + ")"
	}
	begins, args := prefixed("l.key", escape(q.Prefix), []string{match, q.Space, integer(q.Live)})
	found, err := d.query(ctx, fmt.Sprintf(`SELECT %s, bm25(ltm_text) FROM ltm_text JOIN ltm AS l ON l.id = ltm_text.rowid
		WHERE ltm_text MATCH ?1 AND l.namespace = ?2 AND (l.expires_at IS NULL OR l.expires_at > CAST(?3 AS INTEGER))%s ORDER BY bm25(ltm_text), l.id LIMIT %d OFFSET %d`,
		feeds[store.EntryFeed].without(q.NoBody), begins, q.Limit, q.Offset), args...)
	if err != nil {
		return page, err
	}
	page.More = len(found) == q.Limit
	page.Rows, page.Scores = toRows(store.EntryFeed, found), make([]float64, len(found))
	for i, row := range found {
		if score, ok := row[len(row)-1].(float64); ok {
			page.Scores[i] = -score
		}
	}
	return page, d.fill(ctx, page.Rows, q.NoBody)
}

func (d *database) hasText(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	if !d.fullText {
		return store.Unsupported(d.name, store.FullText, "use a server with SQLite's module fts5, or search without a text")
	}
	return nil
}

// matchOf returns the expression of FTS5 for a query, "" if it cannot match.
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
