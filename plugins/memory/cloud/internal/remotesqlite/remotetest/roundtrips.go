package remotetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Open opens the stores of the test's database. The first call of a test returns an empty database, later calls the
// same database. Requests pass through trips.
type Open func(t testing.TB, trips *servertest.Trips) *store.Stores

// call is a call with its expected result and the number of requests that it may need.
type call struct {
	name string
	most int64
	want any
	do   func(ctx context.Context) (any, error)
}

func entries(n, bytes int) []store.Entry {
	all := make([]store.Entry, n)
	for i := range all {
		all[i] = store.Entry{Key: fmt.Sprintf("sensor/%05d", i), Value: fmt.Appendf(nil, `"reading %d %s"`, i, strings.Repeat("x", bytes)), Metadata: fmt.Appendf(nil, `{"n": %d}`, i%10)}
	}
	return all
}

func ltmCalls(m store.LongTermMemory) []call {
	large := json.RawMessage(`"` + strings.Repeat("large ", 50_000) + `"`)
	created := func(entries ...store.Entry) func(ctx context.Context) (any, error) {
		return func(ctx context.Context) (any, error) {
			stored, err := m.Store(ctx, entries...)
			n := 0
			for _, s := range stored {
				if s.Created {
					n++
				}
			}
			return n, err
		}
	}
	value := func(key string) func(ctx context.Context) (any, error) {
		return func(ctx context.Context) (any, error) {
			e, err := m.Retrieve(ctx, "", key)
			return len(e.Value), err
		}
	}
	return []call{
		{"ltm.store", 1, 1, created(entries(1, 100)...)},
		{"ltm.store, large", 2, 1, created(store.Entry{Key: "large", Value: large})},
		{"ltm.store, 1,000 items", 2, 999, created(entries(1000, 100)...)},
		{"ltm.retrieve", 1, 112, value("sensor/00000")},
		{"ltm.retrieve, large", 1, len(large), value("large")},
		{"ltm.search", 1, 10, func(ctx context.Context) (any, error) {
			r, err := m.Search(ctx, store.Search{Text: "reading 7", Limit: 10})
			return len(r.Found), err
		}},
		{"ltm.list", 1, 100, func(ctx context.Context) (any, error) {
			p, err := m.List(ctx, store.List{Prefix: "sensor/", Limit: 100})
			return len(p.Entries), err
		}},
		{"ltm.delete", 1, true, func(ctx context.Context) (any, error) { return m.Delete(ctx, "", "sensor/00001") }},
		{"ltm.delete, a prefix", 1, 99, func(ctx context.Context) (any, error) { return m.DeletePrefix(ctx, "", "sensor/000") }},
	}
}

func allCalls(s *store.Stores) []call {
	return slices.Concat(ltmCalls(s.LongTerm), otherCalls(s), tableCalls(s))
}

func otherCalls(s *store.Stores) []call {
	apply := func(c store.Change) func(ctx context.Context) (any, error) {
		return func(ctx context.Context) (any, error) {
			err := s.Metadata.Apply(ctx, c)
			if errors.Is(err, store.ErrConflict) {
				return "conflict", nil
			}
			return "done", err
		}
	}
	vector := store.VectorItem{ID: "a", Text: "a", Embedding: []float32{1, 0}}
	return []call{
		{"document, create", 1, "done", apply(store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{"n": 1}`), If: store.New})},
		{"document, change", 1, "done", apply(store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{"n": 2}`), If: 1})},
		{"document, conflict", 1, "conflict", apply(store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{"n": 3}`), If: 1})},
		{"document, read", 1, int64(2), func(ctx context.Context) (any, error) { d, err := s.Metadata.Get(ctx, "k", "a"); return d.Version, err }},
		{"document, query", 1, 1, func(ctx context.Context) (any, error) {
			found, err := s.Metadata.Query(ctx, store.DocumentQuery{Kind: "k", OrderBy: "n"})
			return len(found), err
		}},
		{"document, remove", 1, "done", apply(store.Change{Kind: "k", ID: "a", If: 2})},
		{"vector.store", 1, nil, func(ctx context.Context) (any, error) { return nil, s.Vectors.Store(ctx, "c", vector) }},
		{"vector.query", 2, 1, func(ctx context.Context) (any, error) {
			hits, err := s.Vectors.Search(ctx, "c", store.VectorQuery{Embedding: []float32{1, 0}, K: 1})
			return len(hits), err
		}},
		{"vector.delete", 1, 1, func(ctx context.Context) (any, error) { return s.Vectors.Delete(ctx, "c", "a", "b") }},
		{"blob, write", 2, "a", func(ctx context.Context) (any, error) {
			info, err := s.Blobs.Put(ctx, "a", strings.NewReader(strings.Repeat("content", 10_000)))
			return info.Name, err
		}},
		{"blob, move", 1, nil, func(ctx context.Context) (any, error) { return nil, s.Blobs.Move(ctx, "a", "b") }},
		{"blob, read", 1, 70_000, func(ctx context.Context) (any, error) {
			r, err := s.Blobs.Get(ctx, "b")
			if err != nil {
				return nil, err
			}
			content, err := io.ReadAll(r)
			return len(content), errors.Join(err, r.Close())
		}},
		{"blob, remove", 1, nil, func(ctx context.Context) (any, error) { return nil, s.Blobs.Delete(ctx, "b") }},
	}
}

func tableCalls(s *store.Stores) []call {
	return []call{
		{"data.create_table", 2, true, func(ctx context.Context) (any, error) {
			return s.Tables.Create(ctx, store.NewTable{Name: "t", Schema: json.RawMessage(`{"id": "int", "n": "int"}`), PrimaryKey: []string{"id"}})
		}},
		{"data.insert", 2, int64(2), func(ctx context.Context) (any, error) {
			r, err := s.Tables.Insert(ctx, "t", []store.TableRow{{"id": json.RawMessage("1")}, {"id": json.RawMessage("2")}}, store.RowFail, store.TableCall{})
			return r.Inserted, err
		}},
		{"data.update", 2, int64(2), func(ctx context.Context) (any, error) {
			r, err := s.Tables.Update(ctx, "t", store.RowSelection{All: true}, store.TableRow{"n": json.RawMessage("7")}, store.TableCall{})
			return r.Updated, err
		}},
		{"data.delete", 2, int64(1), func(ctx context.Context) (any, error) {
			r, err := s.Tables.Delete(ctx, "t", store.RowSelection{Keys: []json.RawMessage{json.RawMessage("1")}}, store.TableCall{})
			return r.Deleted, err
		}},
		{"data.query, the first", 4, 1, func(ctx context.Context) (any, error) {
			a, err := s.Tables.Query(ctx, store.TableQuery{SQL: "SELECT n FROM t WHERE n = 7", Tables: []string{"t"}})
			return len(a.Rows), err
		}},
		{"data.query", 2, 1, func(ctx context.Context) (any, error) {
			a, err := s.Tables.Query(ctx, store.TableQuery{SQL: "SELECT n FROM t", Tables: []string{"t"}})
			return len(a.Rows), err
		}},
	}
}

// RoundTrips counts the requests of each call.
func RoundTrips(t *testing.T, open Open) {
	t.Helper()
	trips := &servertest.Trips{}
	stores := open(t, trips)
	if _, err := stores.LongTerm.Retrieve(t.Context(), "", "creates the tables"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an empty memory returns %v", err)
	}
	for _, c := range allCalls(stores) {
		before := trips.Count()
		got, err := c.do(t.Context())
		if err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%s returns %v, %v, want %v", c.name, got, err, c.want)
		}
		n := trips.Count() - before
		t.Logf("%s: %d round trips", c.name, n)
		if n > c.most {
			t.Errorf("%s takes %d round trips, want at most %d", c.name, n, c.most)
		}
	}
}

// Benchmark measures the calls and reports the requests of each. Later runs of a call use the data of the first.
func Benchmark(b *testing.B, open Open) {
	b.Helper()
	trips := &servertest.Trips{}
	stores := open(b, trips)
	for _, c := range allCalls(stores) {
		b.Run(c.name, func(b *testing.B) {
			before := trips.Count()
			for b.Loop() {
				if _, err := c.do(b.Context()); err != nil && !errors.Is(err, store.ErrNotFound) {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(trips.Count()-before)/float64(b.N), "trips/op")
		})
	}
}

// LostAnswers loses the first response to each request. The results must be the same as without losses.
func LostAnswers(t *testing.T, open Open) {
	t.Helper()
	trips := &servertest.Trips{Lose: func(n int64) bool { return n%2 == 1 }}
	stores := open(t, trips)
	for _, c := range allCalls(stores) {
		if got, err := c.do(t.Context()); err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%s returns %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}
