package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// roundTrips counts the requests to the server.
type roundTrips struct{ n atomic.Int64 }

func (r *roundTrips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	r.n.Add(1)
	return ctx
}

func (r *roundTrips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *roundTrips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	r.n.Add(1)
	return ctx
}

func (r *roundTrips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (r *roundTrips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func (r *roundTrips) TracePrepareStart(ctx context.Context, _ *pgx.Conn, _ pgx.TracePrepareStartData) context.Context {
	r.n.Add(1)
	return ctx
}

func (r *roundTrips) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {}

// counted opens stores whose requests are counted.
func counted(t testing.TB) (*store.Stores, *roundTrips) {
	t.Helper()
	config := configOf(t, time.Now)
	trips := &roundTrips{}
	d, err := open(t.Context(), config, trips)
	if err != nil {
		t.Fatal(err)
	}
	stores := d.stores(config)
	t.Cleanup(func() {
		if err := (&backend[any]{nil, stores}).Close(); err != nil {
			t.Error(err)
		}
	})
	return stores, trips
}

func entries(n, bytes int) []store.Entry {
	all := make([]store.Entry, n)
	for i := range all {
		all[i] = store.Entry{Key: fmt.Sprintf("sensor/%05d", i), Value: fmt.Appendf(nil, `"reading %d %s"`, i, strings.Repeat("x", bytes)), Metadata: fmt.Appendf(nil, `{"n": %d}`, i%10)}
	}
	return all
}

// calls are those whose requests are limited, by name, with their limits.
func calls(s *store.Stores) []struct {
	name string
	most int64
	call func(ctx context.Context) error
} {
	ltm, docs, vectors := s.LongTerm, s.Metadata, s.Vectors
	large := json.RawMessage(`"` + strings.Repeat("large ", 50_000) + `"`)
	vector := store.VectorItem{ID: "a", Text: "a", Embedding: []float32{1, 0}}
	return []struct {
		name string
		most int64
		call func(ctx context.Context) error
	}{
		{"ltm.store", 1, func(ctx context.Context) error { _, err := ltm.Store(ctx, entries(1, 100)...); return err }},
		{"ltm.store, large", 1, func(ctx context.Context) error {
			_, err := ltm.Store(ctx, store.Entry{Key: "large", Value: large})
			return err
		}},
		{"ltm.store, 1,000 items", 1, func(ctx context.Context) error { _, err := ltm.Store(ctx, entries(1000, 100)...); return err }},
		{"ltm.store, 10,000 items", 1, func(ctx context.Context) error { _, err := ltm.Store(ctx, entries(10_000, 10)...); return err }},
		{"ltm.retrieve", 1, func(ctx context.Context) error { _, err := ltm.Retrieve(ctx, "", "sensor/00000"); return err }},
		{"ltm.retrieve, large", 1, func(ctx context.Context) error { _, err := ltm.Retrieve(ctx, "", "large"); return err }},
		{"ltm.search", 1, func(ctx context.Context) error {
			_, err := ltm.Search(ctx, store.Search{Text: "reading 7", Limit: 10})
			return err
		}},
		{"ltm.list", 1, func(ctx context.Context) error {
			_, err := ltm.List(ctx, store.List{Prefix: "sensor/", Limit: 100})
			return err
		}},
		{"ltm.delete", 1, func(ctx context.Context) error { _, err := ltm.Delete(ctx, "", "sensor/00001"); return err }},
		{"document, write", 2, func(ctx context.Context) error {
			return docs.Apply(ctx, store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{"n": 1}`)})
		}},
		{"document, read", 1, func(ctx context.Context) error { _, err := docs.Get(ctx, "k", "a"); return err }},
		{"document, query", 1, func(ctx context.Context) error {
			_, err := docs.Query(ctx, store.DocumentQuery{Kind: "k", OrderBy: "n"})
			return err
		}},
		{"vector.store", 2, func(ctx context.Context) error { return vectors.Store(ctx, "c", vector) }},
		{"vector.query", 2, func(ctx context.Context) error {
			_, err := vectors.Search(ctx, "c", store.VectorQuery{Embedding: []float32{1, 0}, K: 1})
			return err
		}},
		{"blob, write", 1, func(ctx context.Context) error {
			_, err := s.Blobs.Put(ctx, "a", strings.NewReader("content"))
			return err
		}},
		{"blob, read", 1, func(ctx context.Context) error {
			r, err := s.Blobs.Get(ctx, "a")
			if err == nil {
				err = r.Close()
			}
			return err
		}},
		{"data.create_table", 4, func(ctx context.Context) error {
			_, err := s.Tables.Create(ctx, store.NewTable{Name: "readings", Schema: json.RawMessage(`[{"name": "id", "type": "int"}, {"name": "n", "type": "int"}]`), PrimaryKey: []string{"id"}})
			return err
		}},
		{"data.insert", 3, func(ctx context.Context) error {
			_, err := s.Tables.Insert(ctx, "readings", []store.TableRow{{"id": json.RawMessage("1"), "n": json.RawMessage("1")}}, store.RowFail, store.TableCall{Key: "a", Hash: "a"})
			return err
		}},
		{"data.update", 3, func(ctx context.Context) error {
			_, err := s.Tables.Update(ctx, "readings", store.RowSelection{All: true}, store.TableRow{"n": json.RawMessage("2")}, store.TableCall{})
			return err
		}},
		{"data.query", 5, func(ctx context.Context) error {
			_, err := s.Tables.Query(ctx, store.TableQuery{SQL: "SELECT n FROM readings", MaxRows: 10, MaxBytes: 1000})
			return err
		}},
		{"data.delete", 3, func(ctx context.Context) error {
			_, err := s.Tables.Delete(ctx, "readings", store.RowSelection{All: true}, store.TableCall{})
			return err
		}},
	}
}

func TestEachCallHasFewRoundTrips(t *testing.T) {
	t.Parallel()
	stores, trips := counted(t)
	if _, err := stores.LongTerm.Retrieve(t.Context(), "", "connects"); err == nil {
		t.Error("an entry is there")
	}
	for _, test := range calls(stores) {
		before := trips.n.Load()
		if err := test.call(t.Context()); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if n := trips.n.Load() - before; n > test.most {
			t.Errorf("%s takes %d round trips, want at most %d", test.name, n, test.most)
		}
	}
}

// Entries that have expired and not been swept do not make a list slow.
func TestAListDoesNotReadExpiredEntries(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	config, trips := configOf(t, func() time.Time { return time.Now().Add(time.Duration(later.Load())) }), &roundTrips{}
	d, err := open(t.Context(), config, trips)
	if err != nil {
		t.Fatal(err)
	}
	stores := d.stores(config)
	t.Cleanup(func() { _ = (&backend[any]{nil, stores}).Close() })
	all := entries(1001, 100)
	for i := range all[:1000] {
		all[i].TTL = time.Minute
	}
	if _, err := stores.LongTerm.Store(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	later.Store(int64(time.Hour))
	before := trips.n.Load()
	page, err := stores.LongTerm.List(t.Context(), store.List{Prefix: "sensor/", Limit: 1})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Key != all[1000].Key {
		t.Errorf("%+v, %v, want the entry that does not expire", page, err)
	}
	if n := trips.n.Load() - before; n != 1 {
		t.Errorf("%d round trips, want 1", n)
	}
}

// Large values of a page are read together, after their rows, and no more than a page has.
func TestAPageOfLargeEntries(t *testing.T) {
	t.Parallel()
	stores, trips := counted(t)
	all := entries(60, 200_000)
	all = append(all, store.Entry{Key: "sensor/small", Value: json.RawMessage(`"reading"`)})
	if _, err := stores.LongTerm.Store(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	before := trips.n.Load()
	page, err := stores.LongTerm.List(t.Context(), store.List{Prefix: "sensor/", Limit: 10})
	if n := trips.n.Load() - before; err != nil || n != 2 || len(page.Entries) != 10 || !page.More {
		t.Fatalf("%d entries in %d round trips, more: %v, %v; want 10 in 2", len(page.Entries), n, page.More, err)
	}
	found, err := stores.LongTerm.Search(t.Context(), store.Search{Text: "reading", Limit: 100})
	if err != nil || len(found.Found) != len(all) || found.More {
		t.Fatalf("found %d entries, more: %v, %v; want %d", len(found.Found), found.More, err, len(all))
	}
	want := map[string]string{}
	for _, e := range all {
		want[e.Key] = string(e.Value)
	}
	for _, f := range found.Found {
		if string(f.Value) != want[f.Key] {
			t.Errorf("%s has %d bytes, want %d", f.Key, len(f.Value), len(want[f.Key]))
		}
	}
	before = trips.n.Load()
	keys, err := stores.LongTerm.List(t.Context(), store.List{Prefix: "sensor/", Limit: 100, KeysOnly: true})
	if n := trips.n.Load() - before; err != nil || n != 1 || len(keys.Entries) != len(all) {
		t.Errorf("%d keys in %d round trips, %v; want %d in 1", len(keys.Entries), n, err, len(all))
	}
}

// A connection that was idle is not pinged, which would be a further round trip.
func TestAPauseNeedsNoRoundTrip(t *testing.T) {
	t.Parallel()
	config, err := poolConfig(configOf(t, time.Now))
	if err != nil {
		t.Fatal(err)
	}
	if config.ShouldPing == nil || config.ShouldPing(t.Context(), pgxpool.ShouldPingParams{IdleDuration: time.Hour}) {
		t.Error("a connection is pinged after a pause")
	}
}

func BenchmarkCalls(b *testing.B) {
	stores, trips := counted(b)
	for _, test := range calls(stores) {
		b.Run(test.name, func(b *testing.B) {
			before := trips.n.Load()
			for b.Loop() {
				if err := test.call(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(trips.n.Load()-before)/float64(b.N), "trips/op")
		})
	}
}
