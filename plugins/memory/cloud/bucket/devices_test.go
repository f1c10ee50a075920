package bucket

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/histories"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestDevicesSeeOneHistory(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	for devices, calls := range map[int]int{2: 60, 8: 20} {
		t.Run(fmt.Sprint(devices), func(t *testing.T) {
			t.Parallel()
			var all []*store.Stores
			shared := t.TempDir() // of processes of one device
			for device := range devices {
				dir := shared
				if device%2 == 1 {
					dir = t.TempDir()
				}
				all = append(all, openStores(t, config(t, s, prefixOf(t), dir, map[string]any{"wait_seconds": 600})))
			}
			histories.Check(t, calls, all)
		})
	}
}

// set stores an entry.
func set(t *testing.T, s *store.Stores, key, value string) {
	t.Helper()
	if _, err := s.LongTerm.Store(t.Context(), store.Entry{Key: key, Value: json.RawMessage(`"` + value + `"`)}); err != nil {
		t.Fatal(err)
	}
}

// get returns an entry, "" if there is none.
func get(t *testing.T, s *store.Stores, key string) string {
	t.Helper()
	m, err := s.LongTerm.Retrieve(t.Context(), "", key)
	if errors.Is(err, store.ErrNotFound) {
		return ""
	}
	var text string
	if err == nil {
		err = json.Unmarshal(m.Value, &text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A device that was suspended while another one took over writes nothing.
func TestLostLease(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *objtest.Server) {
		proxy, behind := objtest.NewProxy(t, s)
		options := map[string]any{"lease_seconds": 1, "stall_timeout": 1, "attempts": 1, "idle_seconds": 60}
		slow := openStores(t, config(t, behind, prefixOf(t), t.TempDir(), options))
		set(t, slow, "a", "1")
		proxy.Hold(1) // nothing that it asks is answered
		other := openStores(t, config(t, s, prefixOf(t), t.TempDir(), nil))
		set(t, other, "a", "2")
		_, err := slow.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: json.RawMessage(`"3"`)})
		if e := tea.AsError(err); err == nil || e.Type != tea.ConnectionError && e.Type != tea.Timeout || !e.Retryable {
			t.Errorf("a write without the lease: %v", err)
		}
		if _, err := slow.LongTerm.Retrieve(t.Context(), "", "a"); err == nil {
			t.Error("a read without the lease returned a value")
		}
		proxy.Hold(0)
		if got := get(t, other, "a"); got != "2" {
			t.Errorf("a = %s", got)
		}
		set(t, other, "b", "1")
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if a, b := get(t, slow, "a"), get(t, slow, "b"); a != "2" || b != "1" {
			t.Errorf("after the connection is back: a = %s, b = %s", a, b)
		}
	})
}

// What a device has acknowledged locally is not lost when another device takes
// over before it was published.
func TestLocalWritesAreMerged(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	proxy, behind := objtest.NewProxy(t, s)
	dir := t.TempDir()
	options := map[string]any{"acknowledge": "local", "delay_seconds": 3600, "lease_seconds": 10, "stall_timeout": 1, "attempts": 1, "idle_seconds": 60}
	device, err := Backend().Open(t.Context(), config(t, behind, prefixOf(t), dir, options))
	if err != nil {
		t.Fatal(err)
	}
	set(t, device, "both", "0")
	set(t, device, "gone", "0")
	other := openStores(t, config(t, s, prefixOf(t), t.TempDir(), nil))
	if got := get(t, other, "both"); got != "0" { // the device published when it released the lease
		t.Fatalf("both = %s", got)
	}
	set(t, device, "mine", "1")
	set(t, device, "both", "1")
	if _, err := device.LongTerm.Delete(t.Context(), "", "gone"); err != nil {
		t.Fatal(err)
	}
	if err := device.Vectors.Store(t.Context(), "v", store.VectorItem{ID: "x", Embedding: []float32{1, 0}}); err != nil {
		t.Fatal(err)
	}
	proxy.Hold(1)
	set(t, other, "theirs", "2")
	set(t, other, "both", "2") // later
	if err := device.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	proxy.Hold(0)
	again := openStores(t, config(t, behind, prefixOf(t), dir, options))
	got := map[string]string{}
	for _, key := range []string{"mine", "theirs", "both", "gone"} {
		got[key] = get(t, again, key)
	}
	if want := (map[string]string{"mine": "1", "theirs": "2", "both": "2", "gone": ""}); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("merged: %v, want %v", got, want)
	}
	if items, err := again.Vectors.Get(t.Context(), "v", "x"); err != nil || len(items) != 1 {
		t.Errorf("the vector: %v, %v", items, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "aside-*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// A bucket that was emptied is a new memory. The copy of the old one stays.
func TestEmptiedBucket(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	dir := t.TempDir()
	first := openStores(t, config(t, s, prefixOf(t), dir, nil))
	set(t, first, "a", "1")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(s.Dir, "tea-test", prefixOf(t))); err != nil {
		t.Fatal(err)
	}
	second := openStores(t, config(t, s, prefixOf(t), dir, nil))
	if got := get(t, second, "a"); got != "" {
		t.Errorf("a = %s", got)
	}
	set(t, second, "b", "1")
	if kept, _ := filepath.Glob(filepath.Join(dir, "0", "aside-of-*", "memory.sqlite")); len(kept) != 1 {
		t.Errorf("the old copy: %v", kept)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *objtest.Server) {
		one := openStores(t, config(t, s, prefixOf(t), t.TempDir(), nil))
		two := openStores(t, config(t, s, prefixOf(t), t.TempDir(), nil))
		set(t, one, "a", "1")
		if got := get(t, two, "a"); got != "1" {
			t.Fatalf("a = %s", got)
		}
		if err := one.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if one, two := get(t, one, "a"), get(t, two, "a"); one+two != "" {
			t.Errorf("after the reset: %q, %q", one, two)
		}
		set(t, two, "a", "2")
		if got := get(t, one, "a"); got != "2" {
			t.Errorf("after the reset and a write: %q", got)
		}
	})
}

// A stale lease is taken over after its time, whatever the clocks of the devices
// show.
func TestStaleLease(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	b := s.Open(t, nil, schemes()...)
	g := &lease{bucket: b, self: "dead"}
	if err := g.create(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	taken, previous, err := acquire(t.Context(), b, "alive", time.Minute, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited < 2*time.Second || previous.Holder != "dead" || taken.current.Term != 2 {
		t.Errorf("taken after %v, %+v", waited, taken.current)
	}
	if err := g.swap(t.Context(), func(h *head) { h.Version = 7 }, neverDone); !errors.As(err, new(*lostError)) {
		t.Errorf("a write by a former holder: %v", err)
	}
	if _, _, err := acquire(t.Context(), b, "third", time.Minute, time.Millisecond); err == nil || !tea.AsError(err).Retryable {
		t.Errorf("a lease in use: %v", err)
	}
	var now head
	if now, _, err = readHead(t.Context(), b); err != nil || now.Holder != "alive" || now.Version != 0 || now.Wanted != "third" {
		t.Errorf("the head is %+v, %v", now, err)
	}
}
