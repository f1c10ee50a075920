//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Batches that are joined, and single rows, store the same.
func TestLargeAndSmallBatchesStoreTheSame(t *testing.T) {
	t.Parallel()
	const n = 3*joinFrom + 5
	batch := func(round int) store.Batch {
		var b store.Batch
		for i := range n {
			e := entity(fmt.Sprintf("e%03d", i), "thing", fmt.Sprintf(`{"round":%d}`, round))
			e.Words = []string{fmt.Sprintf("w%d", round)}
			b.Entities = append(b.Entities, e)
			r := relation(e.ID, "next", fmt.Sprintf("e%03d", (i+1)%n))
			r.Weight = float64(round)
			again, later := relation(e.ID, "also", r.To), r // between the same entities
			later.ValidFrom, later.Weight = 5, r.Weight+0.5
			b.Relations = append(b.Relations, r, later, again, relation(e.ID, "self", e.ID))
		}
		return b
	}
	large, small := opened(t, t.TempDir()), opened(t, t.TempDir())
	for round := range 2 {
		b := batch(round)
		apply(t, large, b)
		for i := 0; i < n; i += 10 {
			end := min(i+10, n)
			apply(t, small, store.Batch{Entities: b.Entities[i:end], Relations: b.Relations[4*i : 4*end]})
		}
	}
	if diff := cmp.Diff(contents(t, small), contents(t, large)); diff != "" {
		t.Errorf("large and small batches differ (-small +large):\n%s", diff)
	}
	if got := len(strings.Split(contents(t, large), "\n")); got != 5*n+1 {
		t.Errorf("%d lines of contents, want %d", got, 5*n+1)
	}
}

// contents describes a graph in a line for each entity and relation.
func contents(t *testing.T, db *DB) string {
	t.Helper()
	var text strings.Builder
	err := db.EachEntity(t.Context(), "default", store.EntityScan{Facts: true, Embeddings: true}, func(e *store.Entity) error {
		_, err := fmt.Fprintf(&text, "%s %s %s %v\n", e.ID, e.Type, e.Properties, e.Embedding)
		return err
	})
	if err == nil {
		err = db.EachRelation(t.Context(), "default", store.RelationScan{Ever: true}, func(r *store.Relation) error {
			_, err := fmt.Fprintf(&text, "%s %s %s %v\n", r.From, r.Type, r.To, r.Weight)
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestALongTextIsRefused(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir())
	e := entity("a", "thing", `{}`)
	e.Text = strings.Repeat("x", maxText+1)
	if err := db.Apply(t.Context(), "default", store.Batch{Entities: []store.Entity{e}}); tea.AsError(err).Type != tea.ValidationError {
		t.Errorf("a text of %d bytes: %v", len(e.Text), err)
	}
	e.Text = e.Text[1:]
	apply(t, db, store.Batch{Entities: []store.Entity{e}})
	got, err := db.Entities(t.Context(), "default", []string{"a"}, store.Fields{})
	if err != nil || len(got) != 1 || got[0].Text != e.Text {
		t.Errorf("the longest text was not stored: %v", err)
	}
}

// A writer moves a token along a ring and counts its rounds in the entity. Each
// reader sees one place of the token, and rounds that do not go back.
func TestReadersSeeACommittedState(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir())
	const rounds, watchers = 100, 8
	move := func(ctx context.Context, n int) error {
		b := store.Batch{
			Entities:  []store.Entity{{ID: "token", Type: "token", Properties: []byte(`{}`), UpdatedAt: int64(n)}},
			Relations: []store.Relation{relation("token", "at", fmt.Sprintf("place%d", n%5))},
		}
		b.Relations[0].Weight = float64(n)
		if n > 0 {
			b.DeleteRelations = []store.RelationKey{relation("token", "at", fmt.Sprintf("place%d", (n-1)%5)).RelationKey}
		}
		return db.Apply(ctx, "default", b)
	}
	if err := move(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	for range watchers {
		all.Go(func() {
			last := 0.0
			for {
				select {
				case <-done:
					return
				default:
				}
				found, err := db.Adjacent(t.Context(), "default", store.Adjacency{IDs: []string{"token"}, Ever: true, Max: 10})
				if err != nil || len(found) != 1 || found[0].Weight < last {
					t.Errorf("after round %v a reader sees %v, %v", last, found, err)
					return
				}
				last = found[0].Weight
			}
		})
	}
	for n := 1; n <= rounds; n++ {
		if err := move(t.Context(), n); err != nil {
			t.Error(err)
			break
		}
	}
	close(done)
	all.Wait()
}

// A sensor that updates one entity and one relation does so for ever: the engine
// keeps each version in its buffers until a checkpoint.
func TestUpdatesOfOneEntityDoNotFillTheBuffers(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir())
	const updates = 1500
	for n := range updates {
		e, r := entity("sensor", "thing", fmt.Sprintf(`{"n":%d}`, n)), relation("sensor", "at", "place")
		r.Weight = float64(n)
		if err := db.Apply(t.Context(), "default", store.Batch{Entities: []store.Entity{e}, Relations: []store.Relation{r}}); err != nil {
			t.Fatalf("update %d: %v", n, err)
		}

		if used := db.writer.memory(); used > defaultMemory/2 {
			t.Fatalf("update %d: %d MiB of the buffers are in use", n, used>>20)
		}
	}
	found, err := db.Entities(t.Context(), "default", []string{"sensor"}, store.Fields{})
	if err != nil || len(found) != 1 || string(found[0].Properties) != fmt.Sprintf(`{"n":%d}`, updates-1) {
		t.Errorf("%v, %v", found, err)
	}
	size := int64(0)
	for _, suffix := range []string{"", walSuffix, ".shadow"} {
		if info, err := os.Stat(db.path + suffix); err == nil {
			size += info.Size()
		}
	}
	if size > 16<<20 {
		t.Errorf("the files have %d bytes", size)
	}
}

// A checkpoint rewrites most of the database: with a fixed size of the log the cost of a
// million relations would be that of some hundred databases.
func TestTheSizeOfALogGrowsWithTheDatabase(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	var written int64
	for database, log := int64(0), int64(0); database < 1000*mb; {
		if log += mb; due(log, database) {
			database, log = database+log, 0
			written += database
		}
	}
	if written > 6*1000*mb {
		t.Errorf("checkpoints write %d MB until the database has 1000", written/mb)
	}
	if due(15*mb, 0) || !due(16*mb, 0) || due(99*mb, 400*mb) || !due(100*mb, 400*mb) {
		t.Error("a log is applied too early or too late")
	}
}

// A checkpoint rewrites the relations of many entities together, and the database cannot
// be opened any more if it runs out of buffers.
func TestAGraphThatIsLargerThanItsBuffers(t *testing.T) {
	t.Parallel()
	need(t)
	dir := t.TempDir()
	s, err := Open(t.Context(), store.Options{Dir: dir, Create: true, MemoryBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const rounds, each, nodes = 6, 5000, 5000
	for round := range rounds {
		var b store.Batch
		for i := range each {
			n := round*each + i
			b.Relations = append(b.Relations, relation(fmt.Sprintf("e%05d", n%nodes), fmt.Sprintf("r%d", n/nodes), fmt.Sprintf("e%05d", n*7919%nodes)))
		}
		apply(t, s.(*DB), b)
	}
	apply(t, s.(*DB), store.Batch{Entities: []store.Entity{entity("last", "thing", "{}")}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), store.Options{Dir: dir, MemoryBytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if db := s.(*DB); db.memory <= 16<<20 || db.memory < db.needed() {
		t.Errorf("the buffers have %d bytes, and the database needs %d", db.memory, db.needed())
	}
	stats, err := s.Stats(t.Context(), "default")
	if err != nil || stats.Relations != rounds*each || stats.Entities != 1 {
		t.Errorf("%d relations and %d entities (%v)", stats.Relations, stats.Entities, err)
	}
}
