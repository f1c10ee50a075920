package recall

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// fusionConstant is k of reciprocal rank fusion. 60 is the value of Cormack, Clarke and Büttcher (SIGIR 2009).
	fusionConstant = 60
	// fusionDepth is the minimum number of entries of each ranking that are fused.
	fusionDepth = 100
)

// EntryQuery is a query for entries of the long-term memory by their vectors, and
// by their words if Search has a text.
type EntryQuery struct {
	store.Search
	Collection string
	Embedding  []float32
}

// Entries ranks entries by their vectors or, if the query has a text, by
// reciprocal rank fusion of both rankings: the score of an entry is the sum of
// 1/(60+rank) over the rankings that have it. Entries without a vector of their
// current content are ranked by their words alone.
func (r *Recall) Entries(ctx context.Context, q EntryQuery) (store.Results, error) {
	depth := max(fusionDepth, q.Skip+q.Limit+1)
	near, err := r.nearEntries(ctx, q, depth)
	if err != nil {
		return store.Results{}, err
	}
	ranked := make([]store.Found, len(near))
	for i, hit := range near {
		ranked[i] = store.Found{Memory: store.Memory{Namespace: q.Namespace, Key: hit.Key}, Score: hit.Score}
	}
	var cut bool
	if strings.TrimSpace(q.Text) != "" {
		text := q.Search
		text.Skip, text.Limit, text.KeysOnly = 0, depth, true
		words, err := r.o.LTM.Search(ctx, text)
		if err != nil {
			return store.Results{}, err
		}
		ranked, cut = fuse(ranked, words.Found), words.Cut
	}
	results, err := r.fill(ctx, q.Search, ranked)
	results.Cut = cut
	return results, err
}

// nearEntries returns entries of the query's namespace and prefix, nearest first.
func (r *Recall) nearEntries(ctx context.Context, q EntryQuery, depth int) ([]Hit, error) {
	query, err := within(q.Namespace, store.VectorQuery{Embedding: q.Embedding, K: depth, MinScore: -1, Filter: q.Metadata})
	if err != nil {
		return nil, err
	}
	near, err := r.search(ctx, q.Collection, query, func(d Document) bool {
		return d.Source == LTM && d.Namespace == q.Namespace && strings.HasPrefix(d.Key, q.Prefix)
	})
	if err != nil || len(near) > 0 {
		return near, err
	}
	collections, err := r.o.Vectors.Collections(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(collections, func(c store.Collection) bool { return c.Name == q.Collection && c.Count > 0 }) {
		return nil, tea.Errorf(tea.ValidationError, "the collection %q has no vectors; memory.backfill_embeddings creates them", q.Collection)
	}
	return nil, nil
}

func fuse(rankings ...[]store.Found) []store.Found {
	fused := map[string]store.Found{}
	for _, ranking := range rankings {
		for i, f := range ranking {
			have, ok := fused[f.Key]
			if !ok {
				have = store.Found{Memory: f.Memory}
			}
			have.Score += 1 / float64(fusionConstant+i+1)
			fused[f.Key] = have
		}
	}
	all := slices.Collect(maps.Values(fused))
	sort.Slice(all, func(i, j int) bool {
		return cmp.Or(cmp.Compare(all[j].Score, all[i].Score), strings.Compare(all[i].Key, all[j].Key)) < 0
	})
	return all
}

// fill reads a page of ranked entries.
func (r *Recall) fill(ctx context.Context, q store.Search, ranked []store.Found) (results store.Results, err error) {
	bytes := int64(0)
	for _, f := range ranked[min(q.Skip, len(ranked)):] {
		if len(results.Found) == q.Limit {
			results.More = true
			break
		}
		if !q.KeysOnly {
			e, err := r.o.LTM.Retrieve(ctx, q.Namespace, f.Key)
			switch {
			case gone(err):
				continue
			case errors.Is(err, content.ErrDamaged):
				f.Damaged = true
			case err != nil:
				return store.Results{}, err
			default:
				f.Memory = e
			}
		}
		bytes += f.JSONBytes()
		if q.MaxBytes > 0 && bytes > q.MaxBytes && len(results.Found) > 0 {
			results.More = true
			break
		}
		results.Found = append(results.Found, f)
	}
	return results, nil
}
