package fulltext

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// TestSearchesAreConsistentDuringChanges replaces documents, flushes
// and merges, while searches count documents that are always there.
func TestSearchesAreConsistentDuringChanges(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	const docs = 50
	// So small that the background is always busy.
	x, err := Open(t.TempDir(), Options{MemoryBytes: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	text := func(id, version int) []Field {
		return []Field{{Text: fmt.Sprintf("always here, doc%d version%d of many%d", id, version, version%13)}}
	}
	seq := int64(0)
	change := func(id, version int) {
		seq++
		if err := x.Put(Document{ID: int64(id), Seq: seq, Fields: text(id, version)}); err != nil {
			t.Error(err)
		}
	}
	for id := range docs {
		change(id, 0)
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	finish := sync.OnceFunc(func() { close(done); readers.Wait() })
	defer finish()
	for reader := range 3 {
		readers.Go(func() {
			query := []string{"always", `"always here"`, "alw*"}[reader]
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				r, err := x.Search(context.Background(), query, SearchOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				seen := map[int64]bool{}
				for hit := range r.All() {
					seen[hit.ID] = true
				}
				if r.Len() != docs || len(seen) != docs {
					t.Errorf("%s found %d, %d of them different, want %d", query, r.Len(), len(seen), docs)
					return
				}
				_, _ = x.Watermark(), x.Stats()
			}
		})
	}
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := x.Flush(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	versions := 40
	if peertest.RaceDetector {
		versions = 10
	}
	for version := 1; version <= versions; version++ {
		for id := range docs {
			change(id, version)
			if id%10 == 0 && len(found(t, x, fmt.Sprintf(`doc%d "version%d"`, id, version))) == 0 {
				t.Error("a change is not found by the next search")
			}
		}
	}
	finish()
	waitMerged(t, x)
	if s := x.Stats(); s.Documents != docs || s.Watermark != seq || s.Segments > 3*mergeWidth {
		t.Errorf("in the end %+v", s)
	}
}

// TestAReadOnlyIndexTakesChangesAndLeavesTheDirectory changes more than would
// be flushed, and drops a corrupt state.
func TestAReadOnlyIndexTakesChangesAndLeavesTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := mustOpen(t, dir, "")
	put(t, x, "valve", "pump")
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	x, err = Open(dir, Options{ReadOnly: true, MemoryBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	for id := range int64(50) {
		if err := x.Put(Document{ID: id + 2, Seq: id + 10, Fields: []Field{{Text: "valve"}}}); err != nil {
			t.Fatal(err)
		}
		if err := x.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if got := found(t, x, "valve"); len(got) != 51 {
		t.Errorf("found %v", got)
	}
	if err := x.Reset(); err != nil || x.Len() != 0 {
		t.Errorf("%d documents after Reset: %v", x.Len(), err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadDir(dir)
	if err != nil || len(after) != len(before) {
		t.Errorf("the directory has %v, had %v: %v", after, before, err)
	}
	x = mustOpen(t, dir, "")
	defer x.Close()
	if got := found(t, x, "valve pump"); len(got) != 2 || x.Lost() != nil {
		t.Errorf("found %v afterwards: %v", got, x.Lost())
	}
}
