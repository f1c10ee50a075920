package server

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
)

// In a large directory a list has the runs that this server has changed at once, and
// others after the next scan.
func TestListDoesNotWaitForTheScanOfALargeDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	journal, err := os.ReadFile(filepath.FromSlash("../../../../test/compat/v1/minimal.tea"))
	if err != nil {
		t.Fatal(err)
	}
	add := func(id string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, id+".tea"), journal, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := openTest(t, filepath.Join(dir, "serve"))
	t.Cleanup(l.close)
	s := &server{mu: &l.mu, led: l, svc: &teacmd.Service{Runs: dir}}
	want := func(when string, want ...string) {
		t.Helper()
		entries, err := s.entries()
		var got []string
		for _, e := range entries {
			got = append(got, e.ID)
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", when, got, err, want)
		}
	}
	add("a")
	want("first", "a")
	s.index.took = time.Hour
	add("b")
	add("other")
	l.mu.Lock()
	_, err = l.add(false, &entry{End: "b"})
	l.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	want("before a scan", "a", "b")
	s.index.scanned = time.Now().Add(-rescanFactor * 2 * time.Hour)
	if _, err := s.entries(); err != nil {
		t.Fatal(err)
	}
	s.background.Wait()
	want("after a scan", "a", "b", "other")
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.touched.since("other", l.version-1) || l.touched.since("a", l.version-1) {
		t.Errorf("touched: %v", l.touched)
	}
}
