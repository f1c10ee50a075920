package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// TestADatabaseOfTheFirstVersion opens a database with the schema of an older
// version while a device with that version goes on writing.
func TestADatabaseOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	schema := server.Schema(t)
	conn, err := pgx.Connect(t.Context(), server.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	id := pgx.Identifier{schema}.Sanitize()
	exec("CREATE SCHEMA " + id + "; SET search_path TO " + id)
	exec(version1)
	exec("CREATE TABLE tea_schema (version integer NOT NULL); INSERT INTO tea_schema VALUES (1)")
	entry := func(key string) {
		t.Helper()
		h := fmt.Sprintf(`'\x%x'::bytea`, rowHash(store.RecordName{Feed: store.EntryFeed, Key: key}))
		exec(strings.NewReplacer("HASH", h, "KEY", key).Replace(`INSERT INTO ltm AS l (hash, namespace, key, value, content_hash, created_at, updated_at, fresh, words)
			VALUES (HASH, '', 'KEY', '1', '6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b', 1, 1, true, '')
			ON CONFLICT (hash) DO UPDATE SET value = excluded.value, content_hash = excluded.content_hash, updated_at = 1`))
	}
	entry("kept")
	entry("gone")
	exec("INSERT INTO documents VALUES ('note', 'kept', '{}', '{}', 1, 1), ('note', 'gone', '{}', '{}', 1, 2)")
	exec("INSERT INTO vector_collections VALUES ('c', 1, 1)")
	vector := func(name string, seq int) {
		t.Helper()
		exec(fmt.Sprintf(`INSERT INTO vectors (hash, collection, name, seq, text, embedding) VALUES ('\x%x', 'c', '%s', %d, '', '\x0000803f')`, rowHash(store.RecordName{Feed: store.VectorFeed, Space: "c", Key: name}), name, seq))
	}
	vector("kept", 1)
	vector("gone", 2)
	exec("UPDATE tea_seq SET n = 2")

	s, err := openStores(t, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(s.LongTerm.Close(), s.Vectors.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}()
	keys := func(feed store.Feed, after int64) (keys []string, last int64) {
		t.Helper()
		page, err := s.Replica.Changes(t.Context(), store.ChangeQuery{Feed: feed, After: after, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			key := r.Key
			if r.Deleted {
				key = "-" + key
			}
			keys = append(keys, key)
		}
		return keys, page.Last
	}
	last := map[store.Feed]int64{}
	for _, feed := range store.Feeds() {
		got, n := keys(feed, 0)
		if diff := cmp.Diff([]string{"kept", "gone"}, got); diff != "" {
			t.Errorf("%s of the old database (-want +got):\n%s", feed, diff)
		}
		last[feed] = n
	}
	exec("DELETE FROM ltm WHERE key = 'gone'")
	entry("kept")
	entry("new")
	exec("DELETE FROM documents WHERE id = 'gone'")
	exec("UPDATE tea_seq SET n = n + 1; INSERT INTO documents SELECT 'note', 'new', '{}', '{}', 1, n FROM tea_seq WHERE name = 'documents'")
	exec("DELETE FROM vectors WHERE name = 'gone'")
	vector("new", 1000)
	for feed, want := range map[store.Feed][]string{store.EntryFeed: {"-gone", "kept", "new"}, store.DocumentFeed: {"-gone", "new"}, store.VectorFeed: {"-gone", "new"}} {
		got, _ := keys(feed, last[feed])
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s that the old device changed (-want +got):\n%s", feed, diff)
		}
	}
}

// TestChangesWhileOthersWrite follows the feed while devices store and delete
// entries at the same time: the reader, which never looks back, has their last
// state in the end.
func TestChangesWhileOthersWrite(t *testing.T) {
	t.Parallel()
	s, err := openStores(t, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(s.LongTerm.Close(), s.Vectors.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}()
	const writers, rounds, common = 4, 30, 10
	var group sync.WaitGroup
	done := make(chan struct{})
	for w := range writers {
		group.Go(func() {
			for i := range rounds {
				var entries []store.Entry
				for k := range common { // all write the same keys
					entries = append(entries, store.Entry{Key: fmt.Sprint(k), Value: fmt.Appendf(nil, "%d", 1000*w+i)})
				}
				if _, err := s.LongTerm.Store(t.Context(), entries...); err != nil {
					t.Error(err)
				}
				if _, err := s.LongTerm.Delete(t.Context(), "", fmt.Sprint(i%common)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { group.Wait(); close(done) }()
	got := map[string]string{}
	query := store.ChangeQuery{Feed: store.EntryFeed, Limit: 7}
	for last := false; ; {
		page, err := s.Replica.Changes(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			if r.Seq <= query.After {
				t.Errorf("%q has number %d after %d", r.Key, r.Seq, query.After)
			}
			if got[r.Key] = string(r.Body); r.Deleted {
				delete(got, r.Key)
			}
		}
		if query.After = page.Last; page.More {
			continue
		}
		if last {
			break
		}
		select {
		case <-done:
			last = true
		default:
		}
	}
	want := map[string]string{}
	page, err := s.LongTerm.List(t.Context(), store.List{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Entries {
		want[e.Key] = fmt.Sprintf(`{"value":%s}`, e.Value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the feed's last state (-stored +feed):\n%s", diff)
	}
}

// TestNumbersOfVectors are different for those that one call writes and deletes: a
// reader of changes in pages would miss one otherwise.
func TestNumbersOfVectors(t *testing.T) {
	t.Parallel()
	config := configOf(t, time.Now)
	d, err := open(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := d.stores(config)
	defer func() {
		if err := errors.Join(s.LongTerm.Close(), s.Vectors.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}()
	write := func(deleted bool, names ...string) (writes []store.RecordWrite) {
		for _, name := range names {
			r := storetest.VectorRecord("c", name, "text", 1, 2)
			if deleted {
				r = storetest.Tombstone(r)
			}
			writes = append(writes, store.RecordWrite{Record: r, If: store.AnySeq})
		}
		return writes
	}
	for _, writes := range [][]store.RecordWrite{write(false, "a", "b"), append(write(true, "a", "b"), write(false, "c", "d", "e")...)} {
		if _, err := s.Replica.Put(t.Context(), writes...); err != nil {
			t.Fatal(err)
		}
	}
	var same int
	err = d.do(t.Context(), reading, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, "SELECT count(*) FROM vectors JOIN vectors_gone USING (seq)").Scan(&same)
	})
	if err != nil || same != 0 {
		t.Errorf("%d numbers are those of two changes, %v", same, err)
	}
}

// A batch that is numbered, and so is written after its rows were read, has the same
// results as one that is a single statement.
func TestNumberedWritesOfEntries(t *testing.T) {
	t.Parallel()
	d, err := open(t.Context(), configOf(t, time.Now), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const now = int64(1_000_000)
	write := func(at int64, numbered bool, key, value string, expires int64) store.RowResult {
		t.Helper()
		sum := sha256.Sum256([]byte(value))
		w := &store.RowWrite{Deduplicate: true, Row: store.Row{RecordName: store.RecordName{Feed: store.EntryFeed, Key: key}, Body: []byte(value), Size: int64(len(value)), Hash: hex.EncodeToString(sum[:]), Expires: expires}}
		if err := d.Write(t.Context(), &store.Batch{Atomic: true, Numbered: numbered, Now: at, Writes: []*store.RowWrite{w}}); err != nil {
			t.Fatal(err)
		}
		r := w.Result
		r.Seq = 0
		return r
	}
	var rows [2][]store.Row
	var results [2][]store.RowResult
	for i, numbered := range []bool{false, true} {
		for step, w := range []struct {
			value   string
			expires int64
		}{{`1`, 0}, {`1`, 0}, {`2`, 0}, {`2`, now + 3}, {`3`, 0}, {`3`, 0}} {
			results[i] = append(results[i], write(now+int64(step), numbered, fmt.Sprint("k", i), w.value, w.expires))
			found, err := d.Get(t.Context(), store.RowQuery{Feed: store.EntryFeed, Names: []store.RecordName{{Feed: store.EntryFeed, Key: fmt.Sprint("k", i)}}})
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			found[0].ID, found[0].Seq, found[0].Key = 0, 0, ""
			rows[i] = append(rows[i], found[0])
		}
	}
	if diff := cmp.Diff(results[0], results[1]); diff != "" {
		t.Errorf("results (-one statement +numbered):\n%s", diff)
	}
	if diff := cmp.Diff(rows[0], rows[1]); diff != "" {
		t.Errorf("rows (-one statement +numbered):\n%s", diff)
	}
	if !results[1][1].Same || rows[1][2].Created != now || rows[1][4].Created != now+4 {
		t.Errorf("%+v, %+v: want the second write to be the same, and the expired entry to be created again", results[1], rows[1])
	}
}

// An atomic batch with a condition that is not met writes nothing, in no feed.
func TestAnAtomicBatchOfAllFeeds(t *testing.T) {
	t.Parallel()
	d, err := open(t.Context(), configOf(t, time.Now), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	batch := func(version int64) *store.Batch {
		row := func(feed store.Feed, body string) store.Row {
			return store.Row{RecordName: store.RecordName{Feed: feed, Space: "s", Key: "k"}, Body: []byte(body)}
		}
		return &store.Batch{Atomic: true, Numbered: true, Now: 1, Writes: []*store.RowWrite{
			{Row: row(store.EntryFeed, "1")}, {Row: row(store.VectorFeed, "\x00\x00\x80\x3f")}, {Row: row(store.DocumentFeed, "{}"), If: store.Precondition{Version: version}},
		}}
	}
	refused := batch(7)
	if err := d.Write(t.Context(), refused); err != nil || !refused.Writes[2].Result.Unmet {
		t.Fatalf("%+v, %v: want the condition not to be met", refused.Writes[2].Result, err)
	}
	for _, feed := range store.Feeds() {
		page, err := d.Scan(t.Context(), store.RowRange{Feed: feed, Space: "s", Limit: 10})
		if err != nil || len(page.Rows) != 0 {
			t.Errorf("%s has %d rows, %v", feed, len(page.Rows), err)
		}
	}
	done := batch(0)
	if err := d.Write(t.Context(), done); err != nil {
		t.Fatal(err)
	}
	for i, feed := range []store.Feed{store.EntryFeed, store.VectorFeed, store.DocumentFeed} {
		changes, err := d.Changes(t.Context(), store.RowChanges{Feed: feed, Limit: 10})
		if err != nil || len(changes.Rows) != 1 || changes.Rows[0].Seq != done.Writes[i].Result.Seq {
			t.Errorf("%s: %+v, %v, want number %d", feed, changes.Rows, err, done.Writes[i].Result.Seq)
		}
	}
}
