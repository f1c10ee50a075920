package keyed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// synced is a device that synchronises.
type synced struct {
	device
	db      *memoryDB
	replica syncing.Device
}

func openSynced(t *testing.T, now func() time.Time) synced {
	t.Helper()
	db := newMemoryDB()
	opened := records.Open(keyed.Open(keyed.Options{DB: db, Now: now, InlineBytes: 64}), store.Config{Now: now, Language: "english", InlineBytes: 64, Logger: slog.New(slog.DiscardHandler)})
	local, _ := opened.Replica.(syncing.Device)
	return synced{device{opened, t}, db, local}
}

func (d synced) sync(remote store.Replica, policy syncing.Policy) syncing.Result {
	d.t.Helper()
	r, err := syncing.Run(d.t.Context(), syncing.Options{Local: d.replica, Remote: remote, Policy: policy, Now: time.Now})
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func (d synced) set(key, value string) {
	d.t.Helper()
	if _, err := d.LongTerm.Store(d.t.Context(), store.Entry{Key: key, Value: json.RawMessage(value)}); err != nil {
		d.t.Fatal(err)
	}
}

func (d synced) drop(key string) {
	d.t.Helper()
	if _, err := d.LongTerm.Delete(d.t.Context(), "", key); err != nil {
		d.t.Fatal(err)
	}
}

func (d synced) values() map[string]string {
	d.t.Helper()
	page, err := d.LongTerm.List(d.t.Context(), store.List{Limit: 1000})
	if err != nil {
		d.t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range page.Entries {
		all[e.Key] = string(e.Value)
	}
	return all
}

func TestTwoDevicesSynchronise(t *testing.T) {
	t.Parallel()
	long := fmt.Sprintf("%0100d", 7)
	changes := map[string]func(d synced, value string){
		"create": func(d synced, v string) { d.set("new", `"`+v+long+`"`) },
		"update": func(d synced, v string) { d.set("old", `"`+v+`"`) },
		"delete": func(d synced, _ string) { d.drop("old") },
		"same":   func(d synced, _ string) { d.set("old", `"same"`) },
	}
	for first, changeA := range changes {
		for second, changeB := range changes {
			for _, policy := range []syncing.Policy{syncing.LastWrite, syncing.Local, syncing.Remote} {
				t.Run(fmt.Sprint(first, " ", second, " ", policy), func(t *testing.T) {
					t.Parallel()
					a, b, remote := openSynced(t, time.Now), openSynced(t, time.Now), openSynced(t, time.Now)
					a.set("old", `"old"`)
					a.sync(remote.replica, policy)
					b.sync(remote.replica, policy)
					changeA(a, "a")
					changeB(b, "b")
					a.sync(remote.replica, policy)
					r := b.sync(remote.replica, policy)
					conflict := (first == "create") == (second == "create") && (first != second || first == "create" || first == "update")
					if (r.Conflicts == 1) != conflict || r.Conflicts != int64(len(r.Resolved)) {
						t.Errorf("%d conflicts: %v", r.Conflicts, r.Resolved)
					}
					a.sync(remote.replica, policy)
					want := a.values()
					for name, d := range map[string]synced{"b": b, "remote": remote} {
						if diff := cmp.Diff(want, d.values()); diff != "" {
							t.Errorf("a (-) and %s (+):\n%s", name, diff)
						}
					}
					for _, d := range []synced{a, b} { // what has won is not sent again
						if r := d.sync(remote.replica, policy); r.Bytes+r.Pulled+r.Pushed+r.DeletedLocally+r.DeletedThere+r.Conflicts != 0 {
							t.Errorf("synchronised again: %+v", r)
						}
					}
				})
			}
		}
	}
}

// failingDB fails the n-th write.
type failingDB struct {
	*memoryDB
	left int
}

func (f *failingDB) Write(ctx context.Context, ops []keyed.Op) error {
	if f.left--; f.left == 0 {
		return fmt.Errorf("write: %w", keyed.ErrChanged)
	}
	return f.memoryDB.Write(ctx, ops)
}

func TestAConflictingWriteIsRepeated(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		db := &failingDB{newMemoryDB(), n}
		d := open(t, db, time.Now)
		d.store("a", "b")
		if n, err := d.LongTerm.DeletePrefix(t.Context(), "", ""); n != 2 || err != nil {
			t.Errorf("deleted %d entries, %v", n, err)
		}
		d.finds("pot", "")
	}
}

func TestADamagedRowCanBeReplacedAndDeleted(t *testing.T) {
	t.Parallel()
	d := openSynced(t, func() time.Time { return storetest.Start })
	d.set("a", `1`)
	d.set("b", `2`)
	d.set("c", `3`)
	for key := range d.db.pairs {
		if key[0] == 'e' {
			d.db.pairs[key] = "\x07"
		}
	}
	d.set("a", `4`)
	d.drop("b")
	if _, err := d.LongTerm.Sweep(t.Context(), storetest.Start); err != nil {
		t.Error(err)
	}
	if n, err := d.LongTerm.DeletePrefix(t.Context(), "", "c"); n != 1 || err != nil {
		t.Errorf("deleted %d entries, %v", n, err)
	}
	if diff := cmp.Diff(map[string]string{"a": "4"}, d.values()); diff != "" {
		t.Error(diff)
	}
	d.finds("anything", "")
}
