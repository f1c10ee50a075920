package fulltext

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ranking returns the hits of many queries, the scores bit for bit.
func ranking(t *testing.T, x *Index) map[string][]Hit {
	t.Helper()
	out := map[string][]Hit{}
	for _, q := range append(probes, "x1 x2 x3 x4 x5", "t* r* s*", "run*", "connect sensor pump fail") {
		r, err := x.Search(context.Background(), q, SearchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out[q] = r.Top(r.Len())
	}
	return out
}

// TestRankingIsTheSameAfterFlushMergeRestartAndRebuild compares without any
// tolerance.
func TestRankingIsTheSameAfterFlushMergeRestartAndRebuild(t *testing.T) {
	t.Parallel()
	d := newMemDisk()
	h := newHistory(t, d)
	for range 2 * mergeWidth {
		h.change(20)
		before := ranking(t, h.x)
		if err := h.x.Flush(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, ranking(t, h.x)); diff != "" {
			t.Fatalf("after a flush (-before +after):\n%s", diff)
		}
		if err := h.x.quiet(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, ranking(t, h.x)); diff != "" {
			t.Fatalf("after a merge (-before +after):\n%s", diff)
		}
		again, err := open("again", d.clone(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, ranking(t, again)); diff != "" {
			t.Fatalf("after a restart (-before +after):\n%s", diff)
		}
		if err := again.Reset(); err != nil {
			t.Fatal(err)
		}
		seq := int64(0)
		for id, fields := range h.n.docs {
			seq++
			if err := again.Put(Document{ID: id, Seq: seq, Fields: fields}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(before, ranking(t, again)); diff != "" {
			t.Fatalf("after a rebuild (-before +after):\n%s", diff)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAPrefixCountsLiveFormsOnly: a bounded prefix takes the same forms before
// and after a merge has dropped the dead ones.
func TestAPrefixCountsLiveFormsOnly(t *testing.T) {
	t.Parallel()
	x, err := open("disk", newMemDisk(), Options{Language: "none"})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	seq := int64(0)
	put := func(id int, text string) {
		seq++
		if err := x.Put(Document{ID: int64(id), Seq: seq, Fields: []Field{{Text: text}}}); err != nil {
			t.Fatal(err)
		}
	}
	// Twice as many forms as a prefix takes; then the first half dies.
	for i := range 2 * maxForms {
		put(i, fmt.Sprintf("w%05d", i))
		if i == maxForms/3 {
			if err := x.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := found(t, x, "w*"); len(got) != maxForms || got[len(got)-1] != maxForms-1 {
		t.Fatalf("found %d", len(got))
	}
	for i := range maxForms {
		put(i, "gone")
	}
	for _, when := range []string{"in memory", "on disk", "merged"} {
		got := found(t, x, "w*")
		if len(got) != maxForms || got[0] != maxForms || got[len(got)-1] != 2*maxForms-1 {
			t.Errorf("%s: found %d", when, len(got))
		}
		if err := x.Flush(); err != nil {
			t.Fatal(err)
		}
		if when == "on disk" {
			if err := x.quiet(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := x.Stats(); s.Dead > s.Documents/2 {
		t.Errorf("nothing was merged: %+v", s)
	}
}
