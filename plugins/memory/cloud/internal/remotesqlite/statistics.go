package remotesqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
)

const (
	// measured is the number of entries whose words are counted. If there are more, the entries with the smallest
	// content hashes are the sample.
	measured = 500
	// maxMeasured bounds the values read for the sample. The words of larger values are estimated with bytesPerWord.
	maxMeasured  = 16 << 10
	bytesPerWord = 6
)

// lengths caches the mean number of words per entry as of a change.
type lengths struct {
	mu    sync.Mutex
	known bool
	seq   int64
	mean  float64
}

// Statistics returns the statistics of the live entries for a query. With them, other texts can be ranked together with
// the entries, and scores are the same as on other engines.
func (d *database) Statistics(ctx context.Context, query string) (fulltext.Statistics, error) {
	var none fulltext.Statistics
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if err := d.hasText(ctx); err != nil {
		return none, err
	}
	each := d.terms.Each(query)
	queries := make([]string, len(each))
	for i, q := range each {
		queries[i] = matchOf(q)
	}
	const live = "(l.expires_at IS NULL OR l.expires_at > CAST(?1 AS INTEGER))"
	rows, err := d.query(ctx, `SELECT (SELECT n FROM tea_seq WHERE name = 'ltm'), (SELECT count(*) FROM ltm AS l WHERE `+live+`), (SELECT json_group_array(n) FROM (
		SELECT (SELECT count(*) FROM ltm_text JOIN ltm AS l ON l.id = ltm_text.rowid WHERE ltm_text MATCH one.value AND `+live+`) AS n FROM json_each(?2) AS one ORDER BY one.key))`,
		integer(d.micro()), list(queries))
	if err != nil || len(rows) == 0 {
		return none, err
	}
	seq, docs := number(rows[0], 0), number(rows[0], 1)
	var found []int
	if err := json.Unmarshal([]byte(text(rows[0], 2)), &found); err != nil {
		return none, fmt.Errorf("count the entries with the words of the query: %w", err)
	}
	mean, err := d.length(ctx, live, seq)
	return d.terms.Statistics(query, int(docs), int64(math.Round(mean*float64(docs))), found).Tagged(), err
}

func (d *database) length(ctx context.Context, live string, seq int64) (float64, error) {
	d.lengths.mu.Lock()
	defer d.lengths.mu.Unlock()
	if d.lengths.known && d.lengths.seq == seq {
		return d.lengths.mean, nil
	}
	rows, err := d.query(ctx, fmt.Sprintf("SELECT l.key, CASE WHEN l.size <= %d THEN l.value END, l.metadata, l.size FROM ltm AS l WHERE %s ORDER BY l.content_hash, l.id LIMIT %d", maxMeasured, live, measured), integer(d.micro()))
	if err != nil {
		return 0, err
	}
	words := int64(0)
	for _, row := range rows {
		if row[1] == nil {
			words += number(row, 3) / bytesPerWord
		}
		words += int64(d.terms.Count(longterm.Fields(unescape(text(row, 0)), []byte(text(row, 1)), text(row, 2))...))
	}
	d.lengths.known, d.lengths.seq, d.lengths.mean = true, seq, float64(words)/float64(max(len(rows), 1))
	return d.lengths.mean, nil
}
