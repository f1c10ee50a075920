package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// memory is an embedded memory.
type memory struct {
	syncing.Device
	*devicetest.Memory
}

func openMemory(t *testing.T, driver engine.Driver, dir string) (*memory, error) {
	t.Helper()
	m, err := devicetest.OpenMemory(t.Context(), driver, store.Config{Dir: dir}, vector.Options{})
	if err != nil {
		return nil, err
	}
	return &memory{m.Replica.(syncing.Device), m}, nil
}

func mustOpen(t *testing.T, driver engine.Driver) *memory {
	t.Helper()
	m, err := openMemory(t, driver, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// forget removes all tombstones.
func forget(m *memory) error {
	_, err := m.Driver.Sweep(context.Background(), 0, time.Now().Add(time.Hour).UnixMicro())
	return err
}

// faulty is a store whose calls of Put fail before or after they were done.
type faulty struct {
	store.Replica
	after int // the call that fails; 0 = none
	done  bool
}

var errCut = errors.New("cut")

func (f *faulty) Put(ctx context.Context, writes ...store.RecordWrite) ([]store.PutResult, error) {
	f.after--
	if f.after == 0 && !f.done {
		return nil, errCut
	}
	results, err := f.Replica.Put(ctx, writes...)
	if f.after == 0 {
		return nil, errCut
	}
	return results, err
}

func put(t *testing.T, r store.Replica, records ...store.Record) {
	t.Helper()
	for _, record := range records {
		results, err := r.Put(t.Context(), store.RecordWrite{Record: record, If: store.AnySeq})
		if err != nil || results[0].Err != nil {
			t.Fatal(err, results)
		}
	}
}

// contents returns the bodies of all records.
func contents(t *testing.T, r store.Replica) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, feed := range store.Feeds() {
		query := store.ChangeQuery{Feed: feed, Limit: 100}
		for {
			page, err := r.Changes(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			for _, record := range page.Records {
				name := fmt.Sprint(record.Feed, " ", record.Space, " ", record.Key)
				if all[name] = string(record.Body); record.Deleted {
					delete(all, name)
				}
			}
			if query.After, query.FromStart = page.Last, true; !page.More {
				break
			}
		}
	}
	return all
}

func options(local *memory, remote store.Replica, policy syncing.Policy) syncing.Options {
	return syncing.Options{Local: local, Remote: remote, Policy: policy, Now: time.Now}
}

func mustSync(t *testing.T, local *memory, remote store.Replica, policy syncing.Policy) syncing.Result {
	t.Helper()
	r, err := syncing.Run(t.Context(), options(local, remote, policy))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func entry(key string, version int) store.Record {
	return storetest.EntryRecord("", key, fmt.Sprint(version))
}

// TestSyncMatrix changes one record on both sides in every way.
func TestSyncMatrix(t *testing.T) {
	t.Parallel()
	// What the record is on both sides before, and then on each side. 0 = absent.
	for _, c := range []struct{ before, local, remote int }{
		{0, 1, 0}, {0, 0, 1}, {0, 1, 1}, {0, 1, 2}, {1, 2, 1}, {1, 1, 2}, {1, 2, 2}, {1, 2, 3}, {1, 0, 1}, {1, 1, 0}, {1, 0, 2}, {1, 2, 0}, {1, 0, 0},
	} {
		for _, policy := range []syncing.Policy{syncing.LastWrite, syncing.Remote, syncing.Local, syncing.Merge} {
			t.Run(fmt.Sprint(c, policy), func(t *testing.T) {
				t.Parallel()
				local, remote := mustOpen(t, sqlite.Driver{}), mustOpen(t, sqlite.Driver{})
				change := func(m *memory, from, to int) {
					if to == 0 && from != 0 {
						put(t, m, storetest.Tombstone(entry("k", 0)))
					} else if to != from {
						put(t, m, entry("k", to))
					}
				}
				change(local, 0, c.before)
				mustSync(t, local, remote, policy)
				change(local, c.before, c.local)
				change(remote, c.before, c.remote) // the later one
				conflict := c.local != c.remote && c.local != c.before && c.remote != c.before
				want := c.remote
				if conflict && policy == syncing.Local || c.remote == c.before {
					want = c.local
				}
				o := options(local, remote, policy)
				if conflict && policy == syncing.Merge {
					want = 9
					o.Merge = func(context.Context, store.Record, store.Record) (store.Record, error) { return entry("k", 9), nil }
				}
				r, err := syncing.Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if (r.Conflicts == 1) != conflict {
					t.Errorf("%d conflicts", r.Conflicts)
				}
				expected := map[string]string{}
				if want != 0 {
					expected["ltm  k"] = fmt.Sprintf(`{"value":%d}`, want)
				}
				for name, m := range map[string]*memory{"device": local, "remote": remote} {
					if diff := cmp.Diff(expected, contents(t, m)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", name, diff)
					}
				}
				if again := mustSync(t, local, remote, policy); again.Pulled+again.Pushed+again.DeletedLocally+again.DeletedThere+again.Conflicts != 0 {
					t.Errorf("the second time: %+v", again)
				}
			})
		}
	}
}

// TestSyncOfTwoDevices writes on two devices and cuts the connection to their
// remote at every call, before or after the remote has written.
func TestSyncOfTwoDevices(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	remote := mustOpen(t, sqlite.Driver{})
	devices := []*memory{mustOpen(t, sqlite.Driver{}), mustOpen(t, sqlite.Driver{})}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test's data
	t.Logf("seed %d", seed)
	// Each device changes its own keys, so the last value of each must survive.
	want := map[string]string{}
	for round := range 60 {
		for n, device := range devices {
			for range 5 {
				key := fmt.Sprintf("%d/%d", n, random.IntN(10))
				if random.IntN(4) == 0 {
					put(t, device, storetest.Tombstone(entry(key, 0)))
					delete(want, "ltm  "+key)
				} else {
					put(t, device, entry(key, round))
					want["ltm  "+key] = fmt.Sprintf(`{"value":%d}`, round)
				}
			}
			cut := &faulty{Replica: remote, after: random.IntN(3), done: random.IntN(2) == 0}
			if _, err := syncing.Run(t.Context(), options(device, cut, syncing.Remote)); err != nil && !errors.Is(err, errCut) {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		for _, device := range devices {
			if r := mustSync(t, device, remote, syncing.Remote); r.Conflicts != 0 {
				t.Errorf("conflicts: %+v", r.Resolved)
			}
		}
	}
	for name, m := range map[string]*memory{"first": devices[0], "second": devices[1], "remote": remote} {
		if diff := cmp.Diff(want, contents(t, m)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSyncAfterALostAnswer changes a record whose earlier value the remote has
// written without an answer: that is not a conflict.
func TestSyncAfterALostAnswer(t *testing.T) {
	t.Parallel()
	local, remote := mustOpen(t, sqlite.Driver{}), mustOpen(t, sqlite.Driver{})
	put(t, local, entry("k", 1))
	if _, err := syncing.Run(t.Context(), options(local, &faulty{Replica: remote, after: 1, done: true}, syncing.Remote)); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	// Neither is it one if the next write does not reach the remote.
	put(t, local, entry("k", 2))
	if _, err := syncing.Run(t.Context(), options(local, &faulty{Replica: remote, after: 1}, syncing.Remote)); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	put(t, local, entry("k", 3))
	if r := mustSync(t, local, remote, syncing.Remote); r.Conflicts != 0 || r.Pushed != 1 {
		t.Errorf("%+v", r)
	}
	if got := contents(t, remote)["ltm  k"]; got != `{"value":3}` {
		t.Errorf("the remote has %s", got)
	}
}

// TestSyncAfterWeeksOffline removes the tombstones before a device returns.
func TestSyncAfterWeeksOffline(t *testing.T) {
	t.Parallel()
	local, remote := mustOpen(t, sqlite.Driver{}), mustOpen(t, sqlite.Driver{})
	for _, key := range []string{"a", "b", "c"} {
		put(t, local, entry(key, 1), storetest.VectorRecord("v", key, "text", 1, 2), storetest.DocumentRecord("note", key, `{"a":1}`))
	}
	file := storetest.FileRecord("f.txt", "content")
	if _, err := local.Put(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	mustSync(t, local, remote, syncing.LastWrite)
	for _, gone := range []store.Record{entry("a", 0), storetest.VectorRecord("v", "a", "", 1, 2), storetest.DocumentRecord("note", "a", "{}")} {
		put(t, remote, storetest.Tombstone(gone))
	}
	put(t, local, storetest.Tombstone(entry("b", 0)))
	put(t, remote, entry("d", 1)) // a later number than the tombstone's
	for _, m := range []*memory{local, remote} {
		if err := forget(m); err != nil {
			t.Fatal(err)
		}
	}
	r := mustSync(t, local, remote, syncing.LastWrite)
	if !r.Full || r.DeletedLocally != 3 || r.DeletedThere != 1 || r.Pulled != 1 || r.Conflicts != 0 {
		t.Errorf("%+v", r)
	}
	want := contents(t, local)
	if diff := cmp.Diff(want, contents(t, remote)); diff != "" || len(want) != 7 {
		t.Errorf("%d records, device (-) and remote (+):\n%s", len(want), diff)
	}
	from, err := remote.Content(t.Context(), file.Content)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Close(); err != nil {
		t.Error(err)
	}
}

// cutChanges is a store whose connection breaks after some pages of changes.
type cutChanges struct {
	store.Replica
	pages int
}

func (c *cutChanges) Changes(ctx context.Context, query store.ChangeQuery) (store.ChangePage, error) {
	if c.pages--; c.pages < 0 {
		return store.ChangePage{}, errCut
	}
	return c.Replica.Changes(ctx, query)
}

// TestInterruptedSyncOfAllRecords interrupts a comparison of all records. The next
// run still finds the deletions whose tombstones are gone.
func TestInterruptedSyncOfAllRecords(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	local, remote := mustOpen(t, sqlite.Driver{}), mustOpen(t, sqlite.Driver{})
	var all []store.RecordWrite
	for n := range 600 { // more than a page
		all = append(all, store.RecordWrite{Record: entry(fmt.Sprint("k", n), 1), If: store.AnySeq})
	}
	if _, err := remote.Put(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	mustSync(t, local, remote, syncing.LastWrite)
	put(t, remote, storetest.Tombstone(entry("k0", 0)))
	put(t, remote, entry("later", 1))
	if err := forget(remote); err != nil {
		t.Fatal(err)
	}
	if _, err := syncing.Run(t.Context(), options(local, &cutChanges{Replica: remote, pages: 2}, syncing.LastWrite)); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	mustSync(t, local, remote, syncing.LastWrite)
	if diff := cmp.Diff(contents(t, remote), contents(t, local)); diff != "" {
		t.Errorf("remote (-) and device (+):\n%s", diff)
	}
}

// TestSyncWithARefusedMerge merges two records to one that cannot be stored.
func TestSyncWithARefusedMerge(t *testing.T) {
	t.Parallel()
	local, remote := mustOpen(t, sqlite.Driver{}), mustOpen(t, sqlite.Driver{})
	put(t, local, entry("k", 1), entry("other", 1))
	put(t, remote, entry("k", 2))
	o := options(local, remote, syncing.Merge)
	calls := 0
	o.Merge = func(_ context.Context, local, _ store.Record) (store.Record, error) {
		calls++
		local.Body = []byte(`{"metadata":{}}`)
		return local, nil
	}
	r, err := syncing.Run(t.Context(), o)
	if err != nil || len(r.Refused) != 1 || r.Conflicts != 1 || r.Pushed != 1 || calls != 1 {
		t.Errorf("%+v %v after %d calls", r, err, calls)
	}
}

// TestSyncWithoutAContent synchronises a file whose content is lost.
func TestSyncWithoutAContent(t *testing.T) {
	t.Parallel()
	local, remote := mustOpen(t, sqlite.Driver{}), mustOpen(t, sqlite.Driver{})
	for _, path := range []string{"a.txt", "b.txt"} {
		if _, err := remote.Put(t.Context(), storetest.FileRecord(path, path)); err != nil {
			t.Fatal(err)
		}
	}
	lost := storetest.FileRecord("a.txt", "a.txt").Content
	r, err := syncing.Run(t.Context(), options(local, &withoutContent{remote, lost}, syncing.LastWrite))
	if err != nil || len(r.Refused) != 1 || r.Pulled != 1 {
		t.Errorf("%+v %v", r, err)
	}
	if got := contents(t, local); len(got) != 1 || got["documents file b.txt"] == "" {
		t.Errorf("the device has %v", got)
	}
}

// withoutContent is a store that has lost a content.
type withoutContent struct {
	store.Replica
	hash string
}

func (w *withoutContent) Content(ctx context.Context, hash string) (io.ReadCloser, error) {
	if hash == w.hash {
		return nil, fmt.Errorf("content %s: %w", hash, store.ErrNotFound)
	}
	return w.Replica.Content(ctx, hash)
}

// measured is a store whose largest answer of Records is measured. It has forgotten all
// deletions once.
type measured struct {
	store.Replica
	largest, total int
	forgot         map[store.Feed]bool
}

func (m *measured) Records(ctx context.Context, names ...store.RecordName) ([]store.Record, error) {
	records, err := m.Replica.Records(ctx, names...)
	size := 0
	for _, r := range records {
		size += len(r.Body)
	}
	m.largest, m.total = max(m.largest, size), m.total+size
	return records, err
}

func (m *measured) Changes(ctx context.Context, query store.ChangeQuery) (store.ChangePage, error) {
	if m.forgot != nil && !m.forgot[query.Feed] {
		m.forgot[query.Feed] = true
		return store.ChangePage{}, store.ErrTooOld
	}
	return m.Replica.Changes(ctx, query)
}

// TestLargeRecordsAreComparedInSteps compares all records of a memory, of which each
// is small or large.
func TestLargeRecordsAreComparedInSteps(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	local, remote := mustOpen(t, sqlite.Driver{}), mustOpen(t, sqlite.Driver{})
	var writes []store.RecordWrite
	large := `"` + strings.Repeat("x", 100_000) + `"`
	for i := range 150 {
		writes = append(writes, store.RecordWrite{Record: storetest.EntryRecord("", fmt.Sprintf("%03d", i), large), If: store.AnySeq})
	}
	if _, err := local.Put(t.Context(), writes...); err != nil {
		t.Fatal(err)
	}
	m := &measured{Replica: remote}
	mustSync(t, local, m, syncing.LastWrite)
	m.forgot = map[store.Feed]bool{}
	if r := mustSync(t, local, m, syncing.LastWrite); !r.Full {
		t.Error("not all records were compared")
	}
	if m.largest > 8<<20 || m.total < 15_000_000 {
		t.Errorf("%d bytes were read at once, %d in all", m.largest, m.total)
	}
}
