package assemble

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/recall"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// minNearest and maxNearest bound the vectors of the first and the last search.
	minNearest = 256
	maxNearest = 16384
	// maxLooked bounds the candidates whose vectors are read by id.
	maxLooked = 500
	// leastTokens is the least size of a candidate in a context.
	leastTokens = 8
)

// rounded hides differences that come from the order of a sum's terms.
func rounded(x float64) float64 { return math.Round(x*1e9) / 1e9 }

// liken computes the similarity of all candidates and returns the greatest one.
func (g *gathering) liken(ctx context.Context) (best float64, err error) {
	if !g.asked() {
		for _, c := range g.found {
			c.similarity = 1
		}
		return 1, nil
	}
	if err := g.cosines(ctx); err != nil {
		return 0, err
	}
	if err := g.compareLong(ctx); err != nil {
		return 0, err
	}
	if len(g.places) > 0 {
		g.method = BM25
	}
	scale, most := 0.0, 0.0
	for _, c := range g.found {
		if c.hasVector {
			g.method, scale = Cosine, max(scale, c.cosine)
		} else {
			most = max(most, c.words)
		}
	}
	if scale == 0 {
		scale = 1
	}
	for _, c := range g.found {
		switch {
		case c.hasVector:
			c.similarity = rounded(min(max(c.cosine, 0), 1))
		case most > 0:
			c.similarity = rounded(scale * c.words / most)
		}
		best = max(best, c.similarity)
	}
	return best, nil
}

// cosines finds the candidates whose vectors are near the question's.
func (g *gathering) cosines(ctx context.Context) error {
	question, err := g.embed(ctx)
	if question == nil || err != nil {
		return err
	}
	in, best, seen := 0, 0.0, map[string]bool{}
	for k := minNearest; ; k *= 4 {
		hits, err := g.a.o.Vectors.Search(ctx, g.r.Collection, store.VectorQuery{Embedding: question, K: k, MinScore: -1})
		if err != nil {
			return err
		}
		enough := len(hits) < k || k >= maxNearest
		for _, hit := range hits {
			if seen[hit.ID] {
				continue
			}
			if in >= g.r.MaxTokens/leastTokens || !g.reachable(hit.Score, best) {
				enough = true
				break
			}
			seen[hit.ID] = true
			counts, err := g.near(ctx, hit.VectorItem, hit.Score)
			if err != nil {
				return err
			}
			if counts {
				in++
				best = max(best, hit.Score)
			}
		}
		if enough {
			break
		}
	}
	if err := g.lookUp(ctx, question); err != nil {
		return err
	}
	return g.withoutHidden(ctx)
}

// reachable reports whether this cosine is enough for a candidate to reach the threshold.
func (g *gathering) reachable(cosine, best float64) bool {
	if best <= 0 {
		return true
	}
	return slices.ContainsFunc(g.places, func(p *place) bool {
		return g.r.SimilarityWeight*cosine/best+g.r.PriorityWeight*p.priority >= g.r.Threshold
	})
}

// embed returns the question's vector; nil if there are no vectors to compare it
// with, or there is no model.
func (g *gathering) embed(ctx context.Context) ([]float32, error) {
	required := g.r.Method == Cosine
	switch {
	case g.r.Method == BM25 || len(g.places) == 0:
		return nil, nil
	case g.a.o.Vectors == nil || g.r.Embed == nil:
		if required {
			return nil, tea.Errorf(tea.DependencyMissing, "similarity: cosine needs a model and vectors, which this memory does not have")
		}
		return nil, nil
	}
	collections, err := g.a.o.Vectors.Collections(ctx)
	if err != nil {
		return nil, err
	}
	has := func(c store.Collection) bool { return c.Name == g.r.Collection && c.Count > 0 }
	if !slices.ContainsFunc(collections, has) {
		if required {
			return nil, tea.Errorf(tea.ValidationError, "the collection %q has no vectors; memory.backfill_embeddings creates them", g.r.Collection)
		}
		return nil, nil
	}
	question, err := g.r.Embed(ctx, g.r.Query)
	if err == nil || required || ctx.Err() != nil {
		return question, err
	}
	switch e := tea.AsError(err); e.Type {
	case tea.DependencyMissing: // vectors are optional
	case tea.BudgetExceeded, tea.Canceled:
		return nil, err
	default:
		g.r.Warn("the query cannot be embedded; candidates are compared by their words", g.r.Collection, err)
	}
	return nil, nil
}

// near sets the cosine of a vector's candidate. It returns false if the vector
// does not belong to the candidate's current content.
func (g *gathering) near(ctx context.Context, item store.VectorItem, cosine float64) (bool, error) {
	d, ok := recall.Documented(item)
	if !ok || d.Source == recall.LTM && d.Namespace != g.r.Namespace {
		return false, nil
	}
	c := g.found[name{Kind(d.Source), d.Key}]
	if c == nil {
		var err error
		if c, err = g.addDocument(ctx, Kind(d.Source), d.Key, d.Hash); c == nil || err != nil {
			return false, err
		}
	}
	if c.contentHash() != d.Hash {
		return false, nil
	}
	c.hasVector, c.cosine = true, cosine
	return true, nil
}

// addDocument adds a document that has no word of the question, if it is in a place and its content still has this
// vector.
func (g *gathering) addDocument(ctx context.Context, kind Kind, path, hash string) (c *candidate, err error) {
	if kind != Entry {
		t, ok := g.a.texts.find(name{kind, path})
		if !ok || t.Hash != hash {
			return nil, nil
		}
		if err := g.lookUpSessions(ctx, t.SessionID); err != nil || g.hidden[t.SessionID] {
			return nil, err
		}
		return g.file(&t, 0), nil
	}
	id := SessionOf(path)
	if err := g.lookUpSessions(ctx, id); err != nil || g.hidden[id] {
		return nil, err
	}
	if !slices.ContainsFunc(g.places, func(p *place) bool { return p.hasKey(path) }) {
		return nil, nil
	}
	e, err := g.a.o.LTM.Retrieve(ctx, g.r.Namespace, path)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, content.ErrDamaged) || err == nil && e.ContentHash != hash {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, p := range g.places {
		if p.hasKey(path) {
			if err := g.entry(p, e); err != nil {
				return nil, err
			}
		}
	}
	return g.found[name{Entry, path}], nil
}

// lookUp reads the vectors of candidates that are not near, beginning with the best by BM25.
func (g *gathering) lookUp(ctx context.Context, question []float32) error {
	var missing []*candidate
	for _, c := range g.found {
		if !c.hasVector && c.kind != Session {
			missing = append(missing, c)
		}
	}
	slices.SortFunc(missing, byWords)
	missing = missing[:min(len(missing), maxLooked)]
	byID := make(map[string]*candidate, len(missing))
	ids := make([]string, len(missing))
	for i, c := range missing {
		d := recall.Document{Source: string(c.kind), Key: c.path}
		if c.kind == Entry {
			d.Namespace = g.r.Namespace
		}
		ids[i] = d.ID()
		byID[ids[i]] = c
	}
	items, err := g.a.o.Vectors.Get(ctx, g.r.Collection, ids...)
	if err != nil {
		return err
	}
	for _, item := range items {
		c := byID[item.ID]
		d, ok := recall.Documented(item)
		if !ok || d.Hash != c.contentHash() {
			continue
		}
		c.hasVector, c.cosine = true, cosineOf(question, item.Embedding)
	}
	return nil
}

// byWords orders candidates by BM25, best first.
func byWords(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.words, a.words), strings.Compare(a.path, b.path), cmp.Compare(a.kind, b.kind))
}

func cosineOf(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range min(len(a), len(b)) {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}
