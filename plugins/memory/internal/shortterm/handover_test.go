package shortterm

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
)

func put(t *testing.T, m *Memory, key, value string, ttl time.Duration) {
	t.Helper()
	if err := m.Put("n", key, json.RawMessage(value), ttl); err != nil {
		t.Fatal(err)
	}
}

func get(m *Memory, key string) string {
	value, _ := m.Get("n", key)
	return string(value)
}

// next returns the memory of the process that replaces m's process.
func next(t *testing.T, m *Memory) *Memory {
	t.Helper()
	var state bytes.Buffer
	if err := m.Export(&state); err != nil {
		t.Fatal(err)
	}
	other := New(Options{Clock: clock.New()})
	if err := other.Import(json.NewDecoder(&state)); err != nil {
		t.Fatal(err)
	}
	return other
}

func TestHandover(t *testing.T) {
	t.Parallel()
	first := New(Options{Clock: clock.New()})
	put(t, first, "ever", `{"a":"<&>"}`, 0)
	put(t, first, "hour", `1`, time.Hour)
	put(t, first, "gone", `1`, time.Nanosecond)
	second := next(t, first)
	if got := get(second, "ever"); got != `{"a":"<&>"}` {
		t.Errorf("ever: %s", got)
	}
	if at := second.entries[name{"n", "hour"}].at; time.Until(at) > time.Hour || time.Until(at) < time.Hour/2 {
		t.Errorf("hour has %v to live", time.Until(at))
	}
	if got := get(second, "gone"); got != "" {
		t.Errorf("gone: %s", got)
	}
	if got := get(next(t, second), "hour"); got != `1` {
		t.Errorf("hour: %s", got)
	}
}

func TestHandoverKeepsTheOrderOfUse(t *testing.T) {
	t.Parallel()
	first := New(Options{Clock: clock.New()})
	for _, key := range []string{"a", "b", "c"} {
		put(t, first, key, `1`, 0)
	}
	get(first, "a")
	second := next(t, first)
	second.Bound(Bounds{Entries: 2})
	if diff := cmp.Diff([]string{"1", "", "1"}, []string{get(second, "a"), get(second, "b"), get(second, "c")}); diff != "" {
		t.Error(diff)
	}
}

func TestImportKeepsNewerValues(t *testing.T) {
	t.Parallel()
	first := New(Options{Clock: clock.New()})
	put(t, first, "a", `1`, 0)
	var state bytes.Buffer
	if err := first.Export(&state); err != nil {
		t.Fatal(err)
	}
	put(t, first, "a", `2`, 0)
	if err := first.Import(json.NewDecoder(&state)); err != nil {
		t.Fatal(err)
	}
	if got := get(first, "a"); got != "2" {
		t.Errorf("a: %s", got)
	}
}

func TestStateThatCannotBeImported(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":         "",
		"not JSON":      "\x00\x01",
		"other version": `{"version":99}`,
		"torn":          `{"version":1,"at":1,"values":2}` + "\n" + `{"namespace":"n","key":"a","value":1}` + "\n" + `{"names`,
		"cut":           `{"version":1,"at":1,"values":2}` + "\n" + `{"namespace":"n","key":"a","value":1}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := New(Options{Clock: clock.New()}).Import(json.NewDecoder(strings.NewReader(text))); err == nil {
				t.Error("it was imported")
			}
		})
	}
}
