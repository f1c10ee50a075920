package storetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Opener opens a database.
type Opener func(ctx context.Context, o store.Options) (store.Store, error)

// Run checks a backend. Each test has a separate database.
func Run(t *testing.T, open Opener) {
	for name, test := range map[string]func(*testing.T, *suite){
		"EntitiesAreReplacedAndDeleted":    testEntities,
		"RelationsAreReplacedAndDeleted":   testRelations,
		"AdjacentRelations":                testAdjacent,
		"RelationsBetween":                 testBetween,
		"ScansAreInOrder":                  testScans,
		"NamespacesAreSeparate":            testNamespaces,
		"WordsFindEntities":                testSearch,
		"EmbeddingsFindEntities":           testNearest,
		"EmbeddingsHaveOneDimension":       testDimension,
		"ABatchIsStoredCompletelyOrNot":    testAtomic,
		"ValuesAreStoredExactly":           testValues,
		"StatsCount":                       testStats,
		"ADatabaseIsOpenedAgain":           testReopen,
		"AMissingDatabaseIsAnError":        testMissing,
		"ACrashAfterTheFirstWrite":         testCrashed,
		"ABackupIsADatabase":               testBackup,
		"ReadersSeeWholeBatches":           testConcurrent,
		"ACanceledCallReturns":             testCanceled,
		"AnEmptyDatabaseHasNothing":        testEmpty,
		"DeletedEntitiesLeaveTheirIndexes": testIndexes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &suite{t: t, open: open, dir: t.TempDir()}
			s.Store = s.opened(true)
			test(t, s)
		})
	}
}

const ns = "default"

// suite is one test's database.
type suite struct {
	store.Store
	t    *testing.T
	open Opener
	dir  string
}

func (s *suite) opened(create bool) store.Store {
	s.t.Helper()
	db, err := s.open(s.t.Context(), store.Options{Dir: s.dir, Create: create})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := db.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return db
}

func (s *suite) apply(b store.Batch) {
	s.t.Helper()
	if err := s.Apply(s.t.Context(), ns, b); err != nil {
		s.t.Fatal(err)
	}
}

func entity(id string, words ...string) store.Entity {
	return store.Entity{ID: id, Type: "thing", Properties: []byte(`{}`), Words: words, CreatedAt: 1, UpdatedAt: 2}
}

func relation(from, kind, to string) store.Relation {
	return store.Relation{RelationKey: store.RelationKey{From: from, Type: kind, To: to, ValidFrom: store.Always}, ValidTo: store.Forever, Properties: []byte(`{}`), Weight: 1, CreatedAt: 1, UpdatedAt: 2}
}

// stored returns the entity that a backend returns for e.
func stored(e store.Entity) store.Entity {
	e.Words = nil
	return e
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (s *suite) entities(f store.Fields, ids ...string) []store.Entity {
	s.t.Helper()
	found, err := s.Entities(s.t.Context(), ns, ids, f)
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// keys formats relations, sorted.
func keys(relations []store.Relation) string {
	var all []string
	for _, r := range relations {
		all = append(all, r.From+"-"+r.Type+"-"+r.To)
	}
	return sorted(all)
}

func (s *suite) adjacent(a store.Adjacency) []store.Relation {
	s.t.Helper()
	if a.Max == 0 {
		a.Max = 1000
	}
	found, err := s.Adjacent(s.t.Context(), ns, a)
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

func (s *suite) search(types []string, words ...string) string {
	s.t.Helper()
	ids, err := s.Search(s.t.Context(), ns, store.TextQuery{Words: words, Types: types, Limit: 100, Enough: 100})
	if err != nil {
		s.t.Fatal(err)
	}
	return sorted(ids)
}

func (s *suite) nearest(limit int, types []string, v ...float32) string {
	s.t.Helper()
	ids, err := s.Nearest(s.t.Context(), ns, store.VectorQuery{Embedding: v, Types: types, Limit: limit})
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(ids, " ")
}

func (s *suite) stats(namespace string) store.Stats {
	s.t.Helper()
	stats, err := s.Stats(s.t.Context(), namespace)
	if err != nil {
		s.t.Fatal(err)
	}
	return stats
}

func testReopen(t *testing.T, s *suite) {
	e := entity("a", "red")
	e.Embedding, e.Facts = []float32{1, 2}, `{"x":1}`
	dated := relation("b", "met", "a")
	dated.ValidFrom, dated.ValidTo = -1_000_000, 1_577_836_800_000_000
	relations := []store.Relation{relation("a", "knows", "b"), dated}
	s.apply(store.Batch{Entities: []store.Entity{e, entity("b")}, Relations: relations})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Store = s.opened(false)
	same(t, "relations with their times", append(s.adjacent(store.Adjacency{IDs: []string{"a"}, Ever: true}), s.adjacent(store.Adjacency{IDs: []string{"b"}, Ever: true})...), relations)
	same(t, "entity", s.entities(store.Fields{Embeddings: true, Facts: true}, "a"), []store.Entity{stored(e)})
	same(t, "relations", keys(s.adjacent(store.Adjacency{IDs: []string{"b"}, Direction: store.In, Ever: true})), "a-knows-b")
	same(t, "found by word", s.search(nil, "red"), "a")
	same(t, "found by vector", s.nearest(5, nil, 1, 2), "a")
	s.apply(store.Batch{Entities: []store.Entity{entity("c")}})
	same(t, "after another write", s.stats(ns).Entities, 3)
}

func testMissing(t *testing.T, s *suite) {
	if db, err := s.open(t.Context(), store.Options{Dir: t.TempDir()}); err == nil {
		_ = db.Close()
		t.Error("a database that is missing was opened")
	}
}

// testCrashed copies an open database: the copy has the files that a crash leaves.
func testCrashed(t *testing.T, s *suite) {
	s.apply(store.Batch{Entities: []store.Entity{entity("a", "red")}})
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	crashed := &suite{t: t, open: s.open, dir: dir}
	crashed.Store = crashed.opened(false)
	same(t, "after the crash", crashed.search(nil, "red"), "a")
}

func testBackup(t *testing.T, s *suite) {
	s.apply(store.Batch{Entities: []store.Entity{entity("a", "red")}, Relations: []store.Relation{relation("a", "knows", "b")}})
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	s.apply(store.Batch{Entities: []store.Entity{entity("b")}})
	copied := &suite{t: t, open: s.open, dir: dir}
	copied.Store = copied.opened(false)
	same(t, "entities of the copy", copied.stats(ns).Entities, 1)
	same(t, "search in the copy", copied.search(nil, "red"), "a")
	same(t, "entities of the original", s.stats(ns).Entities, 2)
}

func testEmpty(t *testing.T, s *suite) {
	same(t, "entities", len(s.entities(store.Fields{}, "a")), 0)
	same(t, "relations", len(s.adjacent(store.Adjacency{IDs: []string{"a"}, Direction: store.Both, Ever: true})), 0)
	same(t, "words", s.search(nil, "a"), "")
	same(t, "vectors", s.nearest(3, nil, 1), "")
	same(t, "stats", s.stats(ns), store.Stats{})
}

func testCanceled(t *testing.T, s *suite) {
	s.apply(store.Batch{Entities: []store.Entity{entity("a")}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Entities(ctx, ns, []string{"a"}, store.Fields{}); err == nil {
		t.Error("a canceled read returned a result")
	}
	if err := s.Apply(ctx, ns, store.Batch{Entities: []store.Entity{entity("b")}}); err == nil {
		t.Error("a canceled write returned no error")
	}
	s.apply(store.Batch{Entities: []store.Entity{entity("c")}})
	same(t, "entities", len(s.entities(store.Fields{}, "a", "c")), 2)
}

func testConcurrent(t *testing.T, s *suite) {
	const batches, size = 20, 10
	done := make(chan error, 1)
	go func() {
		for n := range batches {
			var b store.Batch
			for i := range size {
				e := entity(fmt.Sprintf("e%d", i), fmt.Sprintf("w%d", n))
				e.UpdatedAt = int64(n)
				b.Entities = append(b.Entities, e)
			}
			if err := s.Apply(context.Background(), ns, b); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for finished := false; !finished; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			finished = true
		default:
		}
		seen := map[int64]int{}
		err := s.EachEntity(t.Context(), ns, store.EntityScan{}, func(e *store.Entity) error { seen[e.UpdatedAt]++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) > 1 {
			t.Fatalf("a scan saw entities of different batches: %v", seen)
		}
	}
	same(t, "words of the last batch", len(strings.Fields(s.search(nil, fmt.Sprintf("w%d", batches-1)))), size)
	same(t, "words of an older batch", s.search(nil, "w0"), "")
}
