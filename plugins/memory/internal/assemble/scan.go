package assemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// maxScanned and maxScannedBytes limit the entries that scan reads.
	maxScanned      = 10_000
	maxScannedBytes = 64 << 20
	scanPage        = 500
)

// computeWeights computes the weights of the question's words over files and entries
// together.
func (g *gathering) computeWeights(ctx context.Context) (err error) {
	if g.statistics, err = g.a.texts.index.Statistics(ctx, g.r.Query); err != nil {
		return err
	}
	ltm, ok := g.a.o.LTM.(interface {
		Statistics(ctx context.Context, text string) (fulltext.Statistics, error)
	})
	if !ok {
		return g.scan(ctx)
	}
	of, err := ltm.Statistics(ctx, g.r.Query)
	if errors.Is(err, store.ErrUnsupported) {
		return g.scan(ctx)
	}
	g.statistics = g.statistics.Add(of)
	return err
}

// scan reads the entries of a database that cannot count words, and keeps those that
// contain words of the question.
func (g *gathering) scan(ctx context.Context) error {
	var all []fulltext.Counts
	kept := int64(0)
	for after := ""; ; {
		page, err := g.a.o.LTM.List(ctx, store.List{Namespace: g.r.Namespace, After: after, Limit: scanPage, MaxBytes: maxScannedBytes / 4})
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			if after = e.Key; e.Damaged {
				continue
			}
			n := g.count(wordsOf(e.Key, e)...)
			all = append(all, n)
			if n.Any() && slices.ContainsFunc(g.places, func(p *place) bool { return p.hasKey(e.Key) }) {
				g.scanned = append(g.scanned, scanned{e, n})
				kept += e.JSONBytes()
			}
		}
		if !page.More {
			break
		}
		if len(all) >= maxScanned || kept >= maxScannedBytes {
			g.r.Warn("the database has no full-text search, and further entries are not compared with the query by their words", g.r.Namespace,
				fmt.Errorf("only the first %d entries in the order of their keys were read", len(all)))
			break
		}
	}
	g.statistics = g.statistics.Add(g.statistics.Among(all).Tagged())
	return nil
}

// scanned is an entry that scan has read.
type scanned struct {
	store.Memory
	counts fulltext.Counts
}

// search returns the best entries of a place, ranked by their words.
func (g *gathering) search(ctx context.Context, p *place) ([]store.Memory, error) {
	var best []store.Memory
	for i, prefix := range p.prefixes {
		found, err := g.a.o.LTM.Search(ctx, store.Search{Namespace: g.r.Namespace, Text: g.r.Query, Prefix: prefix, Limit: maxHits})
		if errors.Is(err, store.ErrUnsupported) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, f := range found.Found {
			best = append(best, f.Memory)
		}
		if i == len(p.prefixes)-1 {
			return best, nil
		}
	}
	in := slices.DeleteFunc(slices.Clone(g.scanned), func(s scanned) bool { return !p.hasKey(s.Key) })
	sort.Slice(in, func(i, j int) bool {
		a, b := in[i], in[j]
		return cmp.Or(cmp.Compare(g.statistics.Score(b.counts), g.statistics.Score(a.counts)), strings.Compare(a.Key, b.Key)) < 0
	})
	for _, s := range in[:min(len(in), maxHits)] {
		best = append(best, s.Memory)
	}
	return best, nil
}
