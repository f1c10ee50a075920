package firestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/remotesqlite/remotetest"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// call is a call, with the requests that it can take and its result.
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

func entryCalls(t testing.TB, m store.LongTermMemory) []call {
	t.Helper()
	seven, err := filter.Parse("metadata", map[string]any{"n": int64(7)})
	if err != nil {
		t.Fatal(err)
	}
	large, huge := `"`+strings.Repeat("large ", 50_000)+`"`, `"`+strings.Repeat("large ", 500_000)+`"`
	others := entries(1000, 0)
	for i := range others {
		others[i].Key, others[i].Metadata = "later/"+others[i].Key, nil
	}
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
		{"ltm.store", 2, 1, created(entries(1, 100)...)},
		{"ltm.store, the same", 1, 0, created(entries(1, 100)...)},
		{"ltm.store, large", 2, 1, created(store.Entry{Key: "large", Value: json.RawMessage(large)})},
		{"ltm.store, 3 MB", 3, 1, created(store.Entry{Key: "huge", Value: json.RawMessage(huge)})},
		{"ltm.store, 1,000 items", 2, 999, created(entries(1000, 100)...)},
		{"ltm.retrieve", 1, 112, value("sensor/00000")},
		{"ltm.retrieve, large", 1, len(large), value("large")},
		{"ltm.retrieve, 3 MB", 1, len(huge), value("huge")},
		{"ltm.list", 1, 100, func(ctx context.Context) (any, error) {
			p, err := m.List(ctx, store.List{Prefix: "sensor/", Limit: 100})
			return len(p.Entries), err
		}},
		{"ltm.search by metadata", 1, 100, func(ctx context.Context) (any, error) {
			r, err := m.Search(ctx, store.Search{Prefix: "sensor/", Limit: 1000, Metadata: seven})
			return len(r.Found), err
		}},
		{"ltm.store, 1,000 further items", 2, 1000, created(others...)},
		{"ltm.search by metadata among 2,000", 3, 100, func(ctx context.Context) (any, error) {
			r, err := m.Search(ctx, store.Search{Limit: 1000, Metadata: seven, KeysOnly: true})
			return len(r.Found), err
		}},
		{"ltm.delete", 2, true, func(ctx context.Context) (any, error) { return m.Delete(ctx, "", "sensor/00001") }},
		{"ltm.delete, a prefix", 2, 99, func(ctx context.Context) (any, error) { return m.DeletePrefix(ctx, "", "sensor/000") }},
	}
}

func documentCalls(s store.MetadataStore) []call {
	apply := func(c store.Change) func(ctx context.Context) (any, error) {
		return func(ctx context.Context) (any, error) {
			err := s.Apply(ctx, c)
			if errors.Is(err, store.ErrConflict) {
				return "conflict", nil
			}
			return "done", err
		}
	}
	return []call{
		{"document, create", 2, "done", apply(store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{"n": 1}`), If: store.New})},
		{"document, change", 2, "done", apply(store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{"n": 2}`), If: 1})},
		{"document, conflict", 1, "conflict", apply(store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{"n": 3}`), If: 1})},
		{"document, read", 1, int64(2), func(ctx context.Context) (any, error) { d, err := s.Get(ctx, "k", "a"); return d.Version, err }},
		{"document, query", 1, 1, func(ctx context.Context) (any, error) {
			found, err := s.Query(ctx, store.DocumentQuery{Kind: "k", OrderBy: "n"})
			return len(found), err
		}},
		{"document, count", 1, 1, func(ctx context.Context) (any, error) { return s.Count(ctx, store.DocumentQuery{Kind: "k"}) }},
		{"document, remove", 2, "done", apply(store.Change{Kind: "k", ID: "a", If: 2})},
	}
}

func vectorCalls(x store.VectorIndex) []call {
	item := store.VectorItem{ID: "a", Text: "a", Embedding: []float32{1, 0}}
	query := func(ctx context.Context) (any, error) {
		hits, err := x.Search(ctx, "c", store.VectorQuery{Embedding: []float32{1, 0}, K: 1})
		return len(hits), err
	}
	return []call{
		{"vector.store", 2, nil, func(ctx context.Context) (any, error) { return nil, x.Store(ctx, "c", item) }},
		{"vector.query, the first", 2, 1, query},
		{"vector.query", 1, 1, query},
		{"vector.list", 2, 1, func(ctx context.Context) (any, error) {
			items, err := x.List(ctx, "c", store.VectorPage{Limit: 10})
			return len(items), err
		}},
		{"vector.delete", 2, 1, func(ctx context.Context) (any, error) { return x.Delete(ctx, "c", "a", "b") }},
		{"vector.drop", 5, true, func(ctx context.Context) (any, error) {
			_, existed, err := x.Drop(ctx, "c")
			return existed, err
		}},
	}
}

func rowCalls(s store.TableStore) []call {
	row := func(id string) []store.TableRow { return []store.TableRow{{"id": []byte(id), "n": []byte("1")}} }
	one := store.RowSelection{Keys: []json.RawMessage{[]byte("1")}}
	result := func(r store.TableResult, err error) (any, error) {
		return []int64{r.Inserted, r.Updated, r.Deleted, r.Missing}, err
	}
	return []call{
		{"data.create_table", 2, true, func(ctx context.Context) (any, error) {
			return s.Create(ctx, store.NewTable{Name: "t", Schema: []byte(`{"id": "int", "n": "int"}`), PrimaryKey: []string{"id"}})
		}},
		{"data.insert", 3, []int64{1, 0, 0, 0}, func(ctx context.Context) (any, error) {
			return result(s.Insert(ctx, "t", row("1"), store.RowFail, store.TableCall{}))
		}},
		{"data.insert with a key", 3, []int64{1, 0, 0, 0}, func(ctx context.Context) (any, error) {
			return result(s.Insert(ctx, "t", row("2"), store.RowFail, store.TableCall{Key: "k", Hash: "h"}))
		}},
		{"data.insert again", 2, []int64{1, 0, 0, 0}, func(ctx context.Context) (any, error) {
			return result(s.Insert(ctx, "t", row("2"), store.RowFail, store.TableCall{Key: "k", Hash: "h"}))
		}},
		{"data.query, the first", 4, 2, func(ctx context.Context) (any, error) {
			a, err := s.Query(ctx, store.TableQuery{SQL: "SELECT * FROM t", Tables: []string{"t"}, MaxRows: 10})
			return len(a.Rows), err
		}},
		{"data.update of rows", 3, []int64{0, 1, 0, 1}, func(ctx context.Context) (any, error) {
			return result(s.UpdateRows(ctx, "t", append(row("1"), row("7")...), store.TableCall{}))
		}},
		{"data.update", 6, []int64{0, 1, 0, 0}, func(ctx context.Context) (any, error) {
			return result(s.Update(ctx, "t", one, store.TableRow{"n": []byte("5")}, store.TableCall{}))
		}},
		{"data.delete", 7, []int64{0, 0, 1, 0}, func(ctx context.Context) (any, error) {
			return result(s.Delete(ctx, "t", one, store.TableCall{}))
		}},
	}
}

func calls(t testing.TB, s *store.Stores) []call {
	t.Helper()
	return slices.Concat(entryCalls(t, s.LongTerm), documentCalls(s.Metadata), vectorCalls(s.Vectors), rowCalls(s.Tables))
}

func opener(t testing.TB) remotetest.Open {
	t.Helper()
	d := newDatabases(t)
	return func(t testing.TB, trips *servertest.Trips) *store.Stores {
		t.Helper()
		return d.openWith(t, time.Now, trips)
	}
}

func TestEachCallHasFewRoundTrips(t *testing.T) {
	t.Parallel()
	trips := &servertest.Trips{}
	for _, c := range calls(t, opener(t)(t, trips)) {
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

// The first answer to each request is lost. All results are those of a network that
// loses none: nothing is done twice.
func TestLostAnswersChangeNothing(t *testing.T) {
	t.Parallel()
	trips := &servertest.Trips{Lose: func(n int64) bool { return n%2 == 1 }}
	for _, c := range calls(t, opener(t)(t, trips)) {
		if got, err := c.do(t.Context()); err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%s returns %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

func TestDevicesSeeOneHistory(t *testing.T) {
	t.Parallel()
	remotetest.Histories(t, opener(t))
}

func BenchmarkCalls(b *testing.B) {
	trips := &servertest.Trips{}
	for _, c := range calls(b, opener(b)(b, trips)) {
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
