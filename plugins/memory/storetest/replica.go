package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Replica runs the suite of [store.Replica]. The first call of open in a test
// returns an empty store; each later call reopens the same records.
func Replica(t *testing.T, open func(t *testing.T) store.Replica) {
	t.Helper()
	run(t, func(*testing.T) func(t *testing.T) store.Replica { return open }, map[string]func(t *testing.T, open func(t *testing.T) store.Replica){
		"round trip":  replicaRoundTrip,
		"order":       replicaOrder,
		"deletions":   replicaDeletions,
		"conditions":  replicaConditions,
		"pages":       replicaPages,
		"contents":    replicaContents,
		"refusals":    replicaRefusals,
		"reopen":      replicaReopen,
		"concurrent":  replicaConcurrent,
		"first wins":  replicaFirstWins,
		"names":       replicaNames,
		"many writes": replicaMany,
	})
}

// EntryRecord returns a record of the long-term memory. The value is JSON.
func EntryRecord(namespace, key, value string) store.Record {
	body, err := json.Marshal(store.EntryBody{Value: json.RawMessage(value)})
	if err != nil {
		panic(err)
	}
	return store.Record{RecordName: store.RecordName{Feed: store.EntryFeed, Space: namespace, Key: key}, Body: body}
}

// VectorRecord returns a record of the vector index.
func VectorRecord(collection, id, text string, embedding ...float32) store.Record {
	body, err := json.Marshal(store.VectorBody{Text: text, Embedding: embedding})
	if err != nil {
		panic(err)
	}
	return store.Record{RecordName: store.RecordName{Feed: store.VectorFeed, Space: collection, Key: id}, Body: body}
}

// DocumentRecord returns a record of the metadata store. The body is JSON.
func DocumentRecord(kind, id, body string) store.Record {
	return store.Record{RecordName: store.RecordName{Feed: store.DocumentFeed, Space: kind, Key: id}, Body: json.RawMessage(body)}
}

// Tombstone returns the record that deletes another one.
func Tombstone(r store.Record) store.Record {
	return store.Record{RecordName: r.RecordName, Deleted: true}
}

// putAll writes records without conditions.
func putAll(t *testing.T, r store.Replica, records ...store.Record) []store.PutResult {
	t.Helper()
	writes := make([]store.RecordWrite, len(records))
	for i, record := range records {
		writes[i] = store.RecordWrite{Record: record, If: store.AnySeq}
	}
	results, err := r.Put(t.Context(), writes...)
	if err != nil {
		t.Fatal(err)
	}
	for i, result := range results {
		if result.Err != nil || result.Conflict {
			t.Fatalf("write %v: %+v", records[i].RecordName, result)
		}
	}
	return results
}

// changesOf returns all changes of a feed after a number.
func changesOf(t *testing.T, r store.Replica, feed store.Feed, after int64) []store.Record {
	t.Helper()
	var all []store.Record
	for fromStart := after == 0; ; {
		page, err := r.Changes(t.Context(), store.ChangeQuery{Feed: feed, After: after, FromStart: fromStart, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Records...)
		if !page.More {
			return all
		}
		after = page.Last
	}
}

// keysOf returns the keys of records, with a minus for tombstones.
func keysOf(records []store.Record) []string {
	keys := []string{}
	for _, r := range records {
		key := r.Key
		if r.Deleted {
			key = "-" + key
		}
		keys = append(keys, key)
	}
	return keys
}

func three(name string) []store.Record {
	return []store.Record{EntryRecord("n", name, `{"a":1}`), VectorRecord("c", name, "text", 1, 0.5), DocumentRecord("note", name, `{"a":1}`)}
}

func replicaRoundTrip(t *testing.T, open func(t *testing.T) store.Replica) {
	r := open(t)
	created, updated, expires := Start.Add(-time.Hour), Start.Add(-time.Minute), Start.Add(time.Hour)
	entry := EntryRecord("ns", "Grüße/日本", `{"big":12345678901234567890,"list":[1,null,"`+strings.Repeat("x", 3000)+`"]}`)
	entry.Created, entry.Updated, entry.Expires = created, updated, expires
	vector := VectorRecord("c", "v", "text", 0.1, -2.5e-7, math.MaxFloat32)
	document := DocumentRecord("note", "d", `{"b": 2, "a": {"c": [1, 2.50]}}`)
	putAll(t, r, entry, vector, document)
	for _, sent := range []store.Record{entry, vector, document} {
		got := changesOf(t, r, sent.Feed, 0)
		if len(got) != 1 {
			t.Fatalf("%s: %d records, want 1", sent.Feed, len(got))
		}
		want(t, string(sent.Feed)+": the name", got[0].RecordName, sent.RecordName)
		sameJSON(t, got[0].Body, sent.Body)
		read, err := r.Records(t.Context(), sent.RecordName)
		if err != nil {
			t.Fatal(err)
		}
		want(t, string(sent.Feed)+": read by name", read[0].Hash+string(read[0].Body), got[0].Hash+string(got[0].Body))
	}
	got := changesOf(t, r, store.EntryFeed, 0)[0]
	for what, times := range map[string][2]time.Time{"created": {got.Created, created}, "updated": {got.Updated, updated}, "expires": {got.Expires, expires}} {
		if !times[0].Equal(times[1]) {
			t.Errorf("%s: %v, want %v", what, times[0], times[1])
		}
	}
	sum := sha256.Sum256([]byte(`{"big":12345678901234567890,"list":[1,null,"` + strings.Repeat("x", 3000) + `"]}`))
	want(t, "the hash of the entry", got.Hash, store.EntryHash(hex.EncodeToString(sum[:]), "", expires))
	want(t, "the hash of the vector", changesOf(t, r, store.VectorFeed, 0)[0].Hash, store.VectorHash("text", []float32{0.1, -2.5e-7, math.MaxFloat32}, ""))
	hash, err := store.DocumentHash(document.Body)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the hash of the document", changesOf(t, r, store.DocumentFeed, 0)[0].Hash, hash)
}

func sameJSON(t *testing.T, got, want json.RawMessage) {
	t.Helper()
	a, err := store.DocumentHash(got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := store.DocumentHash(want)
	if err != nil {
		t.Fatal(err)
	}
	if a != b {
		t.Errorf("body %s, want %s", got, want)
	}
}

func replicaOrder(t *testing.T, open func(t *testing.T) store.Replica) {
	r := open(t)
	for _, name := range []string{"a", "b", "c", "a"} {
		putAll(t, r, three(name)...)
	}
	for _, feed := range store.Feeds() {
		all := changesOf(t, r, feed, 0)
		want(t, string(feed)+" in the order of the last changes", keysOf(all), []string{"b", "c", "a"})
		if !slices.IsSortedFunc(all, func(a, b store.Record) int { return int(a.Seq - b.Seq) }) || all[0].Seq < 1 {
			t.Errorf("%s: the numbers are not in order", feed)
		}
		want(t, string(feed)+" after the second", keysOf(changesOf(t, r, feed, all[1].Seq)), []string{"a"})
		want(t, string(feed)+" after the last", keysOf(changesOf(t, r, feed, all[2].Seq)), []string{})
	}
}

func replicaDeletions(t *testing.T, open func(t *testing.T) store.Replica) {
	r := open(t)
	for i, one := range three("a") {
		feed := one.Feed
		putAll(t, r, one, three("b")[i])
		seen := changesOf(t, r, feed, 0)
		gone := putAll(t, r, Tombstone(one))
		want(t, string(feed)+": the number of a deleted record", gone[0].Seq, int64(0))
		after := changesOf(t, r, feed, seen[1].Seq)
		want(t, string(feed)+": a tombstone", keysOf(after), []string{"-a"})
		read, err := r.Records(t.Context(), one.RecordName, three("b")[i].RecordName, store.RecordName{Feed: feed, Space: one.Space, Key: "never"})
		if err != nil {
			t.Fatal(err)
		}
		want(t, string(feed)+": read by name", keysOf(read), []string{"-a", "b", "-never"})
		want(t, string(feed)+": the number of the tombstone", read[0].Seq, after[0].Seq)
		if read[0].Updated.IsZero() {
			t.Errorf("%s: the tombstone has no time", feed)
		}
		putAll(t, r, Tombstone(one)) // again
		putAll(t, r, one)
		again := changesOf(t, r, feed, after[0].Seq)
		want(t, string(feed)+": stored again", keysOf(again[len(again)-1:]), []string{"a"})
		if _, err := r.Changes(t.Context(), store.ChangeQuery{Feed: feed, After: again[len(again)-1].Seq + 1_000_000, Limit: 1}); !errors.Is(err, store.ErrTooOld) {
			t.Errorf("%s: changes after a number that was never assigned: %v", feed, err)
		}
	}
}

func replicaConditions(t *testing.T, open func(t *testing.T) store.Replica) {
	r := open(t)
	for _, one := range three("a") {
		put := func(record store.Record, condition int64) store.PutResult {
			t.Helper()
			results, err := r.Put(t.Context(), store.RecordWrite{Record: record, If: condition})
			if err != nil || results[0].Err != nil {
				t.Fatal(err, results)
			}
			return results[0]
		}
		first := put(one, 0)
		want(t, string(one.Feed)+": created", first.Conflict, false)
		want(t, string(one.Feed)+": exists", put(one, 0), store.PutResult{Seq: first.Seq, Conflict: true})
		second := put(one, first.Seq)
		want(t, string(one.Feed)+": replaced", second.Conflict || second.Seq <= first.Seq, false)
		want(t, string(one.Feed)+": changed since", put(Tombstone(one), first.Seq), store.PutResult{Seq: second.Seq, Conflict: true})
		want(t, string(one.Feed)+": deleted", put(Tombstone(one), second.Seq), store.PutResult{})
		want(t, string(one.Feed)+": is gone", put(one, second.Seq), store.PutResult{Conflict: true})
		want(t, string(one.Feed)+": created again", put(one, 0).Seq > second.Seq, true)
	}
}

func replicaPages(t *testing.T, open func(t *testing.T) store.Replica) {
	r := open(t)
	for i := range 7 {
		putAll(t, r, EntryRecord("", fmt.Sprint("k", i), fmt.Sprintf("%q", strings.Repeat("x", 1000))))
	}
	for _, query := range []store.ChangeQuery{{Limit: 3}, {Limit: 100, MaxBytes: 3200}, {Limit: 100, MaxBytes: 1}} {
		query.Feed = store.EntryFeed
		var keys []string
		for {
			page, err := r.Changes(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Records) == 0 || len(page.Records) > 3 {
				t.Fatalf("%d records on a page", len(page.Records))
			}
			keys = append(keys, keysOf(page.Records)...)
			if query.After = page.Last; !page.More {
				break
			}
		}
		want(t, "all pages", keys, []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6"})
	}
}

// FileRecord returns the write of a record of a file with a content.
func FileRecord(path, content string) store.RecordWrite {
	sum := sha256.Sum256([]byte(content))
	hash := hex.EncodeToString(sum[:])
	record := DocumentRecord("file", path, fmt.Sprintf(`{"hash":%q,"size":%d,"type":"text/plain","text":true,"lines":1,"tokens":1,"created_at":"2026-01-01T00:00:00.000000Z","updated_at":"2026-01-02T00:00:00.000000Z"}`, hash, len(content)))
	record.Content = hash
	return store.RecordWrite{Record: record, If: store.AnySeq, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

func replicaContents(t *testing.T, open func(t *testing.T) store.Replica) {
	r := open(t)
	large := strings.Repeat("large ", 100_000)
	results, err := r.Put(t.Context(), FileRecord("a.txt", large), FileRecord("b.txt", "small"))
	if err != nil || results[0].Err != nil || results[1].Err != nil {
		t.Fatal(err, results)
	}
	all := changesOf(t, r, store.DocumentFeed, 0)
	for i, content := range []string{large, "small"} {
		from, err := r.Content(t.Context(), all[i].Content)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(from)
		if err = errors.Join(err, from.Close()); err != nil {
			t.Fatal(err)
		}
		want(t, "the content", bytes.Equal(data, []byte(content)), true)
	}
	want(t, "the time of the file", all[0].Updated.Format(time.DateOnly), "2026-01-02")
	if _, err := r.Content(t.Context(), strings.Repeat("0", 64)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a content that does not exist: %v", err)
	}
	wrong := FileRecord("c.txt", "right")
	wrong.Open = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("wrong")), nil }
	if results, err := r.Put(t.Context(), wrong); err == nil && results[0].Err == nil {
		t.Error("a content with another hash was accepted")
	}
	want(t, "files", len(changesOf(t, r, store.DocumentFeed, 0)), 2)
}

func replicaRefusals(t *testing.T, open func(t *testing.T) store.Replica) {
	r := open(t)
	putAll(t, r, VectorRecord("c", "v", "text", 1, 2))
	bad := []store.Record{
		EntryRecord("", "", "1"), EntryRecord("\n", "k", "1"),
		{RecordName: EntryRecord("", "k", "1").RecordName, Body: json.RawMessage(`{"value":`)},
		VectorRecord("c", "w", "text", 1, 2, 3), VectorRecord("c", "z", "text", 0, 0), DocumentRecord("note", "d", `[]`), DocumentRecord("", "d", `{}`),
	}
	writes := make([]store.RecordWrite, 0, len(bad)+1)
	for _, record := range bad {
		writes = append(writes, store.RecordWrite{Record: record, If: store.AnySeq})
	}
	writes = append(writes, store.RecordWrite{Record: EntryRecord("", "good", "1"), If: store.AnySeq})
	results, err := r.Put(t.Context(), writes...)
	if err != nil {
		t.Fatal(err)
	}
	for i, record := range bad {
		if results[i].Err == nil {
			t.Errorf("record %+v was accepted", record)
		}
	}
	want(t, "the other one", results[len(bad)].Err == nil && results[len(bad)].Seq > 0, true)
	want(t, "entries", keysOf(changesOf(t, r, store.EntryFeed, 0)), []string{"good"})
	if _, err := r.Changes(t.Context(), store.ChangeQuery{Feed: "other", Limit: 1}); err == nil {
		t.Error("there is a feed called other")
	}
}

func replicaReopen(t *testing.T, open func(t *testing.T) store.Replica) {
	r := open(t)
	identity := must(r.Identity(t.Context()))(t)
	putAll(t, r, three("a")...)
	last := map[store.Feed]int64{}
	for _, one := range three("a") {
		putAll(t, r, Tombstone(one))
		changes := changesOf(t, r, one.Feed, 0)
		last[one.Feed] = changes[len(changes)-1].Seq
	}
	r = open(t)
	want(t, "the identity", must(r.Identity(t.Context()))(t), identity)
	putAll(t, r, three("b")...)
	for _, feed := range store.Feeds() {
		want(t, string(feed)+" after the last number", keysOf(changesOf(t, r, feed, last[feed])), []string{"b"})
	}
}

// replicaConcurrent reads the changes while others write: a reader that only moves forward must find each record.
func replicaConcurrent(t *testing.T, open func(t *testing.T) store.Replica) {
	r := open(t)
	const writers, each = 4, 25
	var group sync.WaitGroup
	done := make(chan struct{})
	for w := range writers {
		group.Go(func() {
			for i := range each {
				_, err := r.Put(t.Context(), store.RecordWrite{Record: EntryRecord("", fmt.Sprintf("%d/%d", w, i), "1"), If: store.AnySeq})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { group.Wait(); close(done) }()
	seen := map[string]bool{}
	after := int64(0)
	for last := false; ; {
		page, err := r.Changes(t.Context(), store.ChangeQuery{Feed: store.EntryFeed, After: after, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range page.Records {
			seen[record.Key] = true
		}
		if after = page.Last; page.More {
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
	want(t, "records", len(seen), writers*each)
}

func replicaFirstWins(t *testing.T, open func(t *testing.T) store.Replica) {
	r := open(t)
	const writers = 8
	results := make([]store.PutResult, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			got, err := r.Put(t.Context(), store.RecordWrite{Record: EntryRecord("", "k", fmt.Sprint(w))})
			if err != nil {
				t.Error(err)
				return
			}
			results[w] = got[0]
		})
	}
	group.Wait()
	won := 0
	for _, result := range results {
		if !result.Conflict {
			won++
		}
	}
	want(t, "writers that created the record", won, 1)
}

func replicaNames(t *testing.T, open func(t *testing.T) store.Replica) {
	r := open(t)
	records := []store.Record{
		EntryRecord("", "a", "1"), EntryRecord("a", "b", "2"), EntryRecord("", "a\x01b", "3"), EntryRecord("日", "%_'\"", "4"),
		VectorRecord("a", "b", "", 1), VectorRecord("b", "b", "", 1), DocumentRecord("a", "b", "{}"), DocumentRecord("b", "b", "{}"),
	}
	putAll(t, r, records...)
	names := make([]store.RecordName, len(records))
	for i, record := range records {
		names[i] = record.RecordName
	}
	read, err := r.Records(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	for i, record := range read {
		want(t, fmt.Sprintf("record %q", names[i]), record.RecordName, names[i])
		sameJSON(t, record.Body, records[i].Body)
	}
	putAll(t, r, Tombstone(records[4]))
	read, err = r.Records(t.Context(), names[4], names[5])
	if err != nil {
		t.Fatal(err)
	}
	want(t, "one of two collections", []bool{read[0].Deleted, read[1].Deleted}, []bool{true, false})
}

func replicaMany(t *testing.T, open func(t *testing.T) store.Replica) {
	r := open(t)
	var records, gone []store.Record
	for i := range 1200 {
		name := fmt.Sprintf("%04d", i)
		records = append(records, EntryRecord("n", name, "1"), VectorRecord("c", name, "", float32(i+1)), DocumentRecord("k", name, "{}"))
	}
	putAll(t, r, records...)
	for _, record := range records[:1800] {
		gone = append(gone, Tombstone(record))
	}
	putAll(t, r, gone...)
	names := make([]store.RecordName, len(records))
	for i, record := range records {
		names[i] = record.RecordName
	}
	read, err := r.Records(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	for i, record := range read {
		if record.Deleted != (i < 1800) {
			t.Fatalf("%v: deleted is %v", record.RecordName, record.Deleted)
		}
	}
	for _, feed := range store.Feeds() {
		want(t, string(feed), len(changesOf(t, r, feed, 0)), 1200)
	}
}
