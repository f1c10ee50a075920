package shortterm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/shortterm"
)

// device is a memory with a clock that the test moves.
type device struct {
	*shortterm.Memory
	passed *atomic.Int64
}

func open(bounds shortterm.Bounds) *device {
	d := &device{passed: &atomic.Int64{}}
	now := clock.Fixed(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), func() time.Duration { return time.Duration(d.passed.Load()) })
	d.Memory = shortterm.New(shortterm.Options{Bounds: bounds, Clock: now})
	return d
}

func (d *device) put(t *testing.T, key, value string, ttl time.Duration) {
	t.Helper()
	if err := d.Put("n", key, json.RawMessage(value), ttl); err != nil {
		t.Fatal(err)
	}
}

// have returns the keys that have a value. It does not count as a use of them.
func (d *device) have(t *testing.T, keys string) string {
	t.Helper()
	var have []string
	for _, key := range strings.Fields(keys) {
		if _, found := d.Get("n", key); found {
			have = append(have, key)
		}
	}
	return strings.Join(have, " ")
}

func TestPutGetDelete(t *testing.T) {
	t.Parallel()
	d := open(shortterm.Bounds{})
	d.put(t, "a", `{"x":1}`, 0)
	d.put(t, "a", `{"x":2}`, 0)
	if err := d.Put("other", "a", json.RawMessage(`3`), 0); err != nil {
		t.Fatal(err)
	}
	if value, found := d.Get("n", "a"); !found || string(value) != `{"x":2}` {
		t.Errorf("got %s %v", value, found)
	}
	for _, want := range []bool{true, false} {
		if deleted := d.Delete("n", "a"); deleted != want {
			t.Errorf("deleted %v, want %v", deleted, want)
		}
	}
	if value, found := d.Get("other", "a"); !found || string(value) != "3" {
		t.Errorf("the other namespace has %s %v", value, found)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	d := open(shortterm.Bounds{})
	d.put(t, "short", `1`, time.Second)
	d.put(t, "long", `1`, time.Minute)
	d.put(t, "ever", `1`, 0)
	d.put(t, "longer", `1`, time.Second)
	d.put(t, "longer", `2`, time.Hour)
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{time.Second - 1, "short long ever longer"},
		{time.Second, "long ever longer"},
		{time.Minute, "ever longer"},
		{2 * time.Hour, "ever"},
	} {
		d.passed.Store(int64(c.after))
		if diff := cmp.Diff(c.want, d.have(t, "short long ever longer")); diff != "" {
			t.Errorf("after %v: %s", c.after, diff)
		}
	}
	if d.Delete("n", "long") {
		t.Error("an expired value was deleted")
	}
}

func TestEviction(t *testing.T) {
	t.Parallel()
	t.Run("least recently used", func(t *testing.T) {
		t.Parallel()
		d := open(shortterm.Bounds{Entries: 3})
		d.put(t, "a", `1`, 0)
		d.put(t, "b", `1`, time.Hour)
		d.put(t, "c", `1`, 0)
		d.have(t, "a")
		d.put(t, "d", `1`, 0)
		if diff := cmp.Diff("a c d", d.have(t, "a b c d")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("what expired goes first", func(t *testing.T) {
		t.Parallel()
		d := open(shortterm.Bounds{Entries: 3})
		d.put(t, "a", `1`, 0)
		d.put(t, "b", `1`, 0)
		d.put(t, "c", `1`, time.Second)
		d.passed.Store(int64(time.Minute))
		d.put(t, "d", `1`, 0)
		if diff := cmp.Diff("a b d", d.have(t, "a b c d")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		t.Parallel()
		d := open(shortterm.Bounds{Bytes: 3000})
		large := `"` + strings.Repeat("x", 1000) + `"`
		d.put(t, "a", large, 0)
		d.put(t, "b", large, 0)
		d.put(t, "a", large, 0) // in its own place
		if diff := cmp.Diff("a b", d.have(t, "b a")); diff == "" {
			t.Error("the order of use is not kept")
		}
		d.put(t, "c", large, 0)
		if diff := cmp.Diff("a c", d.have(t, "a b c")); diff != "" {
			t.Error(diff)
		}
		err := d.Put("n", "a", json.RawMessage(`"`+strings.Repeat("x", 3000)+`"`), 0)
		var e *tea.Error
		if !errors.As(err, &e) || e.Type != tea.ValidationError {
			t.Errorf("a value beyond the bound: %v", err)
		}
		if diff := cmp.Diff("a c", d.have(t, "a c")); diff != "" {
			t.Errorf("the refused value has changed something: %s", diff)
		}
	})
	t.Run("smaller bounds", func(t *testing.T) {
		t.Parallel()
		d := open(shortterm.Bounds{})
		for i := range 20 {
			d.put(t, fmt.Sprint(i), `1`, 0)
		}
		d.Bound(shortterm.Bounds{Entries: 2})
		if diff := cmp.Diff("18 19", d.have(t, "0 17 18 19")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	d := open(shortterm.Bounds{Entries: 50})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 500 {
				key := fmt.Sprint(i % 80)
				d.passed.Add(int64(time.Millisecond))
				if err := d.Put("n", key, json.RawMessage(`1`), time.Duration(i%3)*10*time.Millisecond); err != nil {
					t.Error(err)
				}
				d.Get("n", fmt.Sprint((i+g)%80))
				d.Delete("n", fmt.Sprint((i*g)%80))
			}
		})
	}
	all.Wait()
}
