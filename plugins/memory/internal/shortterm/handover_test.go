package shortterm

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
)

func generation(dir string, host hostName) *Memory {
	return New(Options{Clock: clock.New(), Handover: newHandover(dir, host, 50*time.Millisecond, slog.New(slog.DiscardHandler))})
}

func put(t *testing.T, m *Memory, key, value string, ttl time.Duration) {
	t.Helper()
	if err := m.Put(t.Context(), "n", key, json.RawMessage(value), ttl); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, m *Memory, key string) string {
	t.Helper()
	value, _, err := m.Get(t.Context(), "n", key)
	if err != nil {
		t.Fatal(err)
	}
	return string(value)
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	names := []string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func closed(t *testing.T, m *Memory) {
	t.Helper()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestHandover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := generation(dir, parent())
	put(t, first, "ever", `{"a":"<&>"}`, 0)
	put(t, first, "hour", `1`, time.Hour)
	put(t, first, "gone", `1`, time.Nanosecond)
	closed(t, first)

	file := filepath.Join(dir, string(parent())+fileSuffix)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file: %v %v", info, err)
	}
	second := generation(dir, parent())
	if got := get(t, second, "ever"); got != `{"a":"<&>"}` {
		t.Errorf("ever: %s", got)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if at := second.entries[name{"n", "hour"}].at; time.Until(at) > time.Hour || time.Until(at) < time.Hour/2 {
		t.Errorf("hour has %v to live", time.Until(at))
	}
	if got := get(t, second, "gone"); got != "" {
		t.Errorf("gone: %s", got)
	}
	closed(t, second)

	// One that is not asked for anything leaves the values to the next.
	closed(t, generation(dir, parent()))
	third := generation(dir, parent())
	if got := get(t, third, "hour"); got != `1` {
		t.Errorf("hour: %s", got)
	}
	closed(t, third)
}

func TestHandoverKeepsTheOrderOfUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := generation(dir, parent())
	for _, key := range []string{"a", "b", "c"} {
		put(t, first, key, `1`, 0)
	}
	get(t, first, "a")
	closed(t, first)
	second := generation(dir, parent())
	second.Bound(Bounds{Entries: 2})
	if diff := cmp.Diff([]string{"1", "", "1"}, []string{get(t, second, "a"), get(t, second, "b"), get(t, second, "c")}); diff != "" {
		t.Error(diff)
	}
	closed(t, second)
}

func TestNextGenerationWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := generation(dir, parent())
	put(t, first, "a", `1`, 0)

	second := generation(dir, parent())
	_, _, err := second.Get(t.Context(), "n", "a")
	var e *tea.Error
	if !errors.As(err, &e) || e.Type != tea.ConnectionError || !strings.Contains(e.Message, "still has") {
		t.Fatalf("while the first one runs: %v", err)
	}
	second.handover.timeout = time.Minute
	answer := make(chan string)
	go func() {
		value, _, _ := second.Get(t.Context(), "n", "a")
		answer <- string(value)
	}()
	closed(t, first)
	if got := <-answer; got != "1" {
		t.Errorf("got %q", got)
	}
	closed(t, second)
}

func TestHandoverIsForTheSameHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := generation(dir, parent())
	put(t, first, "a", `1`, 0)
	closed(t, first)
	other := generation(dir, hostOf(os.Getpid()))
	if got := get(t, other, "a"); got != "" {
		t.Errorf("another host has %q", got)
	}
	put(t, other, "b", `1`, 0)
	closed(t, other) // it is no child of that host: as if the host were gone
	want := []string{string(hostOf(os.Getpid())) + lockSuffix, string(parent()) + fileSuffix, string(parent()) + lockSuffix}
	if diff := cmp.Diff(want, files(t, dir), cmp.Transformer("sorted", func(s []string) map[string]bool {
		set := map[string]bool{}
		for _, x := range s {
			set[x] = true
		}
		return set
	})); diff != "" {
		t.Error(diff)
	}
}

func TestWhatDeadHostsLeftIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"1-2.json", "1-2.lock", "4194999-7.json", ".writing-1-2-123", "what else"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := generation(dir, parent())
	get(t, m, "a")
	if diff := cmp.Diff([]string{string(parent()) + lockSuffix}, files(t, dir)); diff != "" {
		t.Error(diff)
	}
	closed(t, m)
}

func TestBrokenFilesHandNothingOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", ""},
		"no JSON":       {"\x00\x01", ""},
		"other version": {`{"version":99}`, ""},
		"torn":          {`{"version":1,"at":1}` + "\n" + `{"namespace":"n","key":"a","value":1}` + "\n" + `{"names`, "1"},
		"no value":      {`{"version":1}` + "\n" + `{"namespace":"n","key":"a"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, string(parent())+fileSuffix), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			m := generation(dir, parent())
			if got := get(t, m, "a"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			put(t, m, "a", `2`, 0)
			closed(t, m)
		})
	}
}

func TestFolderThatCannotBeMade(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := generation(filepath.Join(file, "dir"), parent())
	put(t, m, "a", `1`, 0)
	if got := get(t, m, "a"); got != `1` {
		t.Errorf("got %q", got)
	}
	closed(t, m)
}
