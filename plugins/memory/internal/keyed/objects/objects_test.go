package objects_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed"
	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed/objects"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// folder is a storage in memory. It checks conditions like a service.
type folder struct {
	mu       sync.Mutex
	objects  map[string][]byte
	versions map[string]string
	n        int
	// lost is how many answers of writes are lost.
	lost int
}

func newFolder() *folder {
	return &folder{objects: map[string][]byte{}, versions: map[string]string{}}
}

func (f *folder) Get(ctx context.Context, name, have string) ([]byte, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok := f.objects[name]
	switch {
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case !ok:
		return nil, "", objects.ErrNotFound
	case f.versions[name] == have:
		return nil, have, nil
	}
	return data, f.versions[name], nil
}

var errLost = errors.New("the connection is lost")

func (f *folder) Put(_ context.Context, name string, data []byte, match string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.versions[name] != match {
		return "", objects.ErrConflict
	}
	f.n++
	f.objects[name], f.versions[name] = data, fmt.Sprint(f.n)
	if f.lost > 0 && name == "head.json" {
		f.lost--
		return "", errLost
	}
	return f.versions[name], nil
}

func (f *folder) Delete(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, name)
	delete(f.versions, name)
	return nil
}

func (*folder) Close() error { return nil }

// folders has a storage for each test.
type folders struct {
	mu     sync.Mutex
	byTest map[string]*folder
}

func (f *folders) open(t *testing.T, now func() time.Time) *store.Stores {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byTest == nil {
		f.byTest = map[string]*folder{}
	}
	if f.byTest[t.Name()] == nil {
		f.byTest[t.Name()] = newFolder()
	}
	return openStores(f.byTest[t.Name()], now)
}

func openStores(storage objects.Storage, now func() time.Time) *store.Stores {
	return objects.Stores(storage, store.Config{Now: now, Language: "english", InlineBytes: 1024, Logger: slog.New(slog.DiscardHandler)})
}

func TestReplica(t *testing.T) {
	t.Parallel()
	var f folders
	storetest.Replica(t, func(t *testing.T) store.Replica { return f.open(t, time.Now).Replica })
}

func TestLongTermMemory(t *testing.T) {
	t.Parallel()
	var f folders
	var opened storetest.Opened[store.LongTermMemory]
	storetest.LongTermMemory(t, func(t *testing.T, now func() time.Time) store.LongTermMemory {
		return opened.Again(t, func() (store.LongTermMemory, error) { return f.open(t, now).LongTerm, nil })
	})
}

func TestMetadataStore(t *testing.T) {
	t.Parallel()
	var f folders
	storetest.MetadataStore(t, func(t *testing.T) store.MetadataStore { return f.open(t, time.Now).Metadata })
}

func TestBlobStorage(t *testing.T) {
	t.Parallel()
	var f folders
	storetest.BlobStorage(t, func(t *testing.T) store.BlobStorage { return f.open(t, time.Now).Blobs })
}

// Random operations have the results that a map has, and leave no objects behind.
func TestPairs(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	f := newFolder()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // for a test
	want := map[string]string{}
	var d *objects.DB
	for round := range 300 {
		if round%40 == 0 {
			d = objects.Open(f) // another device
		}
		if _, err := d.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		var ops []keyed.Op
		for range random.IntN(60) + 1 {
			key := fmt.Sprintf("k%05d", random.IntN(3000))
			switch n := random.IntN(1000); {
			case n == 0:
				to := fmt.Sprintf("k%05d", random.IntN(3000))
				ops = append(ops, keyed.Op{Key: key, To: to})
				maps.DeleteFunc(want, func(k, _ string) bool { return k >= key && k < to })
			case n < 300:
				ops = append(ops, keyed.Op{Key: key})
				delete(want, key)
			default:
				value := make([]byte, random.IntN(3000))
				ops = append(ops, keyed.Op{Key: key, Value: value})
				want[key] = string(value)
			}
		}
		if err := d.Write(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
		if round%10 == 0 {
			compare(t, d, want)
			compare(t, objects.Open(f), want)
		}
	}
	var head struct{ Leaves, Deltas []any }
	if err := json.Unmarshal(f.objects["head.json"], &head); err != nil {
		t.Fatal(err)
	}
	if n := len(head.Leaves) + len(head.Deltas) + 1; n != len(f.objects) || len(head.Leaves) < 2 || len(head.Deltas) > 12 {
		t.Errorf("%d objects, %d leaves and %d deltas", len(f.objects), len(head.Leaves), len(head.Deltas))
	}
}

func compare(t *testing.T, d *objects.DB, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	var order []string
	for from := ""; ; {
		all, err := d.Scan(t.Context(), from, "z", 97)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			got[p.Key], order, from = string(p.Value), append(order, p.Key), p.Key+"\x00"
		}
		if len(all) < 97 {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || !slices.IsSorted(order) || len(order) != len(got) {
		t.Fatalf("the pairs (-want +got):\n%s", diff)
	}
	for _, key := range []string{"k00000", "k01500", "k02999", "x"} {
		found, err := d.Get(t.Context(), key)
		if value, ok := want[key]; err != nil || (found[0] != nil) != ok || string(found[0]) != value {
			t.Fatalf("%s is %q, %v", key, found[0], err)
		}
	}
}

// No write of devices that write at the same time is lost, also when answers are.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	f := newFolder()
	var group sync.WaitGroup
	const devices, each = 4, 25
	for device := range devices {
		stores := openStores(f, time.Now)
		group.Go(func() {
			for i := range each {
				entry := store.Entry{Key: fmt.Sprintf("%d/%d", device, i), Value: json.RawMessage(`"text"`)}
				for try := 0; ; try++ {
					_, err := stores.LongTerm.Store(t.Context(), entry)
					if err == nil {
						break
					}
					if try == 1000 {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 20 {
		f.mu.Lock()
		f.lost++
		f.mu.Unlock()
	}
	group.Wait()
	page, err := openStores(f, time.Now).LongTerm.List(t.Context(), store.List{Limit: 1000})
	if err != nil || len(page.Entries) != devices*each {
		t.Errorf("%d entries, %v", len(page.Entries), err)
	}
}

func TestAnotherObjectIsNotReplaced(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]tea.ErrorType{
		`{"a":1}`: tea.ValidationError, `no json`: tea.ValidationError,
		`{"format":"tea-memory-pairs","version":2}`: tea.DependencyMissing,
	} {
		f := newFolder()
		f.objects["head.json"], f.versions["head.json"] = []byte(text), "1"
		_, err := openStores(f, time.Now).LongTerm.Store(t.Context(), store.Entry{Key: "k", Value: json.RawMessage(`1`)})
		if e := tea.AsError(err); e == nil || e.Type != want || string(f.objects["head.json"]) != text {
			t.Errorf("%s: %v, want a %s", text, err, want)
		}
	}
}

// overtaken is a storage that writes the head, and then says that it did not: the
// client has sent the request twice, and another device was faster than the second one.
type overtaken struct {
	*folder
	then func()
}

func (o *overtaken) Put(ctx context.Context, name string, data []byte, match string) (string, error) {
	version, err := o.folder.Put(ctx, name, data, match)
	if then := o.then; name == "head.json" && then != nil && err == nil {
		o.then = nil
		then()
		return "", objects.ErrConflict
	}
	return version, err
}

// A write that another device has continued and merged is done.
func TestAContinuedWriteIsDone(t *testing.T) {
	t.Parallel()
	f := newFolder()
	write := func(d *objects.DB, key string) {
		t.Helper()
		if _, err := d.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := d.Write(t.Context(), []keyed.Op{{Key: key, Value: []byte("1")}}); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	other := objects.Open(f)
	write(other, "a")
	write(objects.Open(&overtaken{folder: f, then: func() {
		for n := range 5 {
			write(other, fmt.Sprint("b", n))
		}
	}}), "c")
	found, err := objects.Open(f).Get(t.Context(), "a", "b0", "b4", "c")
	if err != nil || slices.ContainsFunc(found, func(value []byte) bool { return value == nil }) {
		t.Errorf("%q %v", found, err)
	}
}
