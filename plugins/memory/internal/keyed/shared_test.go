package keyed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// device is a process that has the database open.
type device struct {
	*store.Stores
	t *testing.T
}

func open(t *testing.T, db keyed.DB, now func() time.Time) device {
	t.Helper()
	opened := records.Open(keyed.Open(keyed.Options{DB: db, Now: now, InlineBytes: 1024}), store.Config{Now: now, Language: "english", InlineBytes: 1024, Logger: slog.New(slog.DiscardHandler)})
	return device{opened, t}
}

func (d device) store(keys ...string) {
	d.t.Helper()
	var entries []store.Entry
	for _, key := range keys {
		entries = append(entries, store.Entry{Key: key, Value: json.RawMessage(`"a pot of tea"`)})
	}
	if _, err := d.LongTerm.Store(d.t.Context(), entries...); err != nil {
		d.t.Fatal(err)
	}
}

// finds checks the keys that a search finds.
func (d device) finds(text, want string) {
	d.t.Helper()
	r, err := d.LongTerm.Search(d.t.Context(), store.Search{Text: text, Limit: 10})
	if err != nil {
		d.t.Fatal(err)
	}
	var keys []string
	for _, f := range r.Found {
		keys = append(keys, f.Key)
	}
	if got := strings.Join(keys, " "); got != want {
		d.t.Errorf("%q finds %q, want %q", text, got, want)
	}
}

func TestAnotherProcessSeesEachChange(t *testing.T) {
	t.Parallel()
	db := newMemoryDB()
	writer, reader := open(t, db, time.Now), open(t, db, time.Now)
	reader.finds("pot", "")
	writer.store("a", "b")
	reader.finds("pot", "a b")
	if _, err := writer.LongTerm.Delete(t.Context(), "", "a"); err != nil {
		t.Fatal(err)
	}
	reader.finds("pot", "b")
	writer.store("a")
	reader.finds("pot", "a b")
	if err := writer.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader.finds("pot", "")
	writer.store("c")
	reader.finds("pot", "c")
}

func TestOldDeletionsAreForgotten(t *testing.T) {
	t.Parallel()
	db, now := newMemoryDB(), storetest.Start
	d, reader := open(t, db, func() time.Time { return now }), open(t, db, func() time.Time { return now })
	d.store("a", "b")
	reader.finds("pot", "a b")
	if _, err := d.LongTerm.Delete(t.Context(), "", "a"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(91 * 24 * time.Hour)
	if _, err := d.LongTerm.Sweep(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	_, err := d.Replica.Changes(t.Context(), store.ChangeQuery{Feed: store.EntryFeed, After: 1, Limit: 10})
	if !errors.Is(err, store.ErrTooOld) {
		t.Errorf("the changes after the first one are %v, want ErrTooOld", err)
	}
	reader.finds("pot", "b")
	d.store("a")
	reader.finds("pot", "a b")
}

// countingDB counts the rows that are read.
type countingDB struct {
	*memoryDB
	rows int
}

func (c *countingDB) Get(ctx context.Context, keys ...string) ([][]byte, error) {
	for _, key := range keys {
		if strings.HasPrefix(key, "e") {
			c.rows++
		}
	}
	return c.memoryDB.Get(ctx, keys...)
}

func TestTheTextIndexIsNotBuiltAgainAtEachStart(t *testing.T) {
	t.Parallel()
	db := &countingDB{memoryDB: newMemoryDB()}
	d := open(t, db, time.Now)
	keys := make([]string, 3000)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%04d", i)
	}
	d.store(keys...)
	d.finds("k0007", "k0007")
	db.rows = 0
	again := open(t, db, time.Now) // the first process was killed
	again.finds("k2999", "k2999")
	if db.rows > 1000 {
		t.Errorf("the first search after a start reads %d rows, want those of the changes after the last flush", db.rows)
	}
}

// TestDamagedRowsAreRecords damages the row of an entry, which a reader of changes is
// told.
func TestDamagedRowsAreRecords(t *testing.T) {
	t.Parallel()
	db := newMemoryDB()
	d := open(t, db, time.Now)
	d.store("kept", "lost")
	for key, value := range db.pairs {
		if strings.Contains(key, "lost") && strings.Contains(value, "pot of tea") {
			db.pairs[key] = "\xff"
		}
	}
	page, err := d.Replica.Changes(t.Context(), store.ChangeQuery{Feed: store.EntryFeed, Limit: 10})
	if err != nil || len(page.Records) != 2 || page.Records[0].Damaged || !page.Records[1].Damaged {
		t.Errorf("%+v %v", page.Records, err)
	}
}
