package mirror_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/mirror"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// source has a collection of n vectors, one for each change.
type source struct{ n int64 }

func (s source) Changes(ctx context.Context, _ string, after int64) (mirror.Page, error) {
	p := mirror.Page{Dimension: 2, Born: 1, Last: s.n}
	for seq := after + 1; seq <= s.n && len(p.Changes) < 1000; seq++ {
		p.Changes = append(p.Changes, mirror.Change{Seq: seq, ID: seq, Embedding: vectors.Encode([]float32{1, float32(seq)})})
	}
	p.More = len(p.Changes) == 1000
	return p, ctx.Err()
}

func (s source) Items(_ context.Context, ids []int64, _ bool) (map[int64]store.VectorItem, error) {
	all := map[int64]store.VectorItem{}
	for _, id := range ids {
		all[id] = store.VectorItem{ID: strconv.FormatInt(id, 10)}
	}
	return all, nil
}

func TestSearchOfMoreItemsThanRemovedOnesAreRemembered(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := mirror.New(source{3 * mirror.KeepGone})
	hits, err := all.Search(ctx, "c", store.VectorQuery{Embedding: []float32{1, 0}, K: 1})
	if err != nil || len(hits) != 1 || hits[0].ID != "1" {
		t.Errorf("the nearest item is %v, %v, want 1", hits, err)
	}
	if err := all.Close(); err != nil {
		t.Error(err)
	}
}

// TestARestoredDatabase has an older state of a collection than the mirror.
func TestARestoredDatabase(t *testing.T) {
	t.Parallel()
	from := &source{5}
	all := mirror.New(from)
	for _, n := range []int64{5, 3, 4} {
		from.n = n
		hits, err := all.Search(t.Context(), "c", store.VectorQuery{Embedding: []float32{1, 0}, K: 10})
		if err != nil || len(hits) != int(n) {
			t.Errorf("%d items, %v, want %d", len(hits), err, n)
		}
	}
	if err := all.Close(); err != nil {
		t.Error(err)
	}
}

// whole has a collection whose changes have the items, of which there are no others.
type whole struct{ mirror.Source }

func (whole) Changes(ctx context.Context, _ string, after int64) (mirror.Page, error) {
	p := mirror.Page{Dimension: 2, Born: 1, Last: 3}
	if after == 0 {
		for seq, id := range []string{"a", "b"} {
			item := &store.VectorItem{ID: id, Text: "text of " + id, Metadata: map[string]any{"n": int64(seq)}, Embedding: []float32{1, float32(seq)}}
			p.Changes = append(p.Changes, mirror.Change{Seq: int64(seq) + 1, ID: int64(seq) + 7, Embedding: vectors.Encode(item.Embedding), Item: item})
		}
		p.Changes = append(p.Changes, mirror.Change{Seq: 3, ID: 7}) // a is removed
	}
	return p, ctx.Err()
}

func TestItemsOfChangesNeedNoFurtherRequest(t *testing.T) {
	t.Parallel()
	all := mirror.New(whole{})
	defer all.Close()
	for _, embeddings := range []bool{false, true} {
		hits, err := all.Search(t.Context(), "c", store.VectorQuery{Embedding: []float32{1, 0}, K: 2, Embeddings: embeddings})
		if err != nil || len(hits) != 1 || hits[0].Text != "text of b" || (hits[0].Embedding != nil) != embeddings {
			t.Errorf("found %v, %v; want b", hits, err)
		}
	}
}
