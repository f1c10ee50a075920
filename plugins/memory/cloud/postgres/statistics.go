package postgres

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
)

// measured is the number of entries whose words are counted. If there are more, those
// with the smallest hashes of their keys are the sample.
const measured = 1000

// Statistics returns the statistics of the live entries for a query. With them, other
// texts can be ranked together with the entries, by the same scores as on other
// engines.
func (m *longTerm) Statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	if err := m.closed.check(); err != nil {
		return fulltext.Statistics{}, err
	}
	a := &args{}
	alive := live + a.add(m.d.micro()) + ")"
	each := m.d.terms.Each(text)
	queries := make([]string, len(each))
	for i, q := range each {
		queries[i] = strings.Join(alternatives(q), " | ")
	}
	sql := "SELECT (SELECT count(*) FROM ltm WHERE " + alive + "), count(*), coalesce(sum(n), 0)::bigint, ARRAY(SELECT (SELECT count(*) FROM ltm WHERE words @@ q::tsquery AND " + alive + ")" +
		" FROM unnest(" + a.add(queries) + "::text[]) WITH ORDINALITY AS one(q, i) ORDER BY i)" +
		" FROM (SELECT (SELECT sum(cardinality(positions)) FROM unnest(words)) AS n FROM ltm WHERE " + alive + " ORDER BY hash LIMIT " + strconv.Itoa(measured) + ") AS sample"
	var docs, sample, words int64
	var found []int
	err := m.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		found = nil
		return c.QueryRow(ctx, sql, a.list...).Scan(&docs, &sample, &words, &found)
	})
	if err != nil {
		return fulltext.Statistics{}, err
	}
	if sample > 0 {
		words = int64(math.Round(float64(words) / float64(sample) * float64(docs)))
	}
	return m.d.terms.Statistics(text, int(docs), words, found).Tagged(), nil
}
