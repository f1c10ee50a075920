package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
)

// indexedRuns returns the status of each run of an index, newest first.
func indexedRuns(x *Index) (list []string) {
	for _, info := range x.List() {
		list = append(list, fmt.Sprint(info.ID, " ", info.Status))
	}
	return list
}

// startedRun makes a run that began so many hours after others.
func startedRun(t *testing.T, s *Store, id string, hours int, status flow.Status) {
	t.Helper()
	h := testHeader()
	h.RunID, h.StartedAt = id, testTime.Add(time.Duration(hours)*time.Hour)
	createRun(t, s, h, testRecords()[0], statusRecord(status, "n"))
}

func TestIndexNoticesWhatOtherProcessesDo(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	startedRun(t, s, "a", 1, flow.Failed)
	startedRun(t, s, "b", 2, flow.Done)
	x := NewIndex(s)
	step := func(what string, changed, want []string) {
		t.Helper()
		got, err := x.Scan()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(changed, got); diff != "" {
			t.Errorf("%s: changed (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(want, indexedRuns(x)); diff != "" {
			t.Errorf("%s: runs (-want +got):\n%s", what, diff)
		}
	}
	step("first", []string{"a", "b"}, []string{"b done", "a failed"})
	step("idle", nil, []string{"b done", "a failed"})
	startedRun(t, s, "c", 0, flow.Waiting)
	step("new", []string{"c"}, []string{"b done", "a failed", "c waiting"})
	j, _, err := s.Open("a", flow.DurabilitySync) // adds no record yet
	if err != nil {
		t.Fatal(err)
	}
	step("continued", []string{"a"}, []string{"b done", "a running", "c waiting"})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	step("killed", []string{"a"}, []string{"b done", "a failed", "c waiting"})
	if err := s.Remove("b"); err != nil {
		t.Fatal(err)
	}
	step("removed", []string{"b"}, []string{"a failed", "c waiting"})
	startedRun(t, s, "b", 3, flow.Stopped)
	x.Update("b")
	x.Update("none")
	x.Update("../b")
	if diff := cmp.Diff([]string{"b stopped", "a failed", "c waiting"}, indexedRuns(x)); diff != "" {
		t.Errorf("updated (-want +got):\n%s", diff)
	}
	step("after the update", nil, []string{"b stopped", "a failed", "c waiting"})
}

// The second list must not read the journals: they are unreadable, with the same size and time.
func TestListReadsUnchangedJournalsOnce(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	for i := range statusCacheMin {
		startedRun(t, s, fmt.Sprintf("r%02d", i), i, flow.Done)
	}
	want, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range want {
		stat, err := os.Stat(info.Path)
		if err := errors.Join(err, os.WriteFile(info.Path, make([]byte, stat.Size()), 0o600), os.Chtimes(info.Path, stat.ModTime(), stat.ModTime())); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.List()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestListIgnoresADamagedCache(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	for i := range statusCacheMin {
		startedRun(t, s, fmt.Sprintf("r%02d", i), i, flow.Done)
	}
	want, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(s.Dir(), statusCacheName)
	whole, err := os.ReadFile(cache)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(whole); at += 7 {
		for name, text := range map[string][]byte{"cut": whole[:at], "zeros": append(append([]byte{}, whole[:at]...), make([]byte, 100)...)} {
			if err := os.WriteFile(cache, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := s.List(); err != nil || !cmp.Equal(want, got) {
				t.Fatalf("%s at %d: %v\n%s", name, at, err, cmp.Diff(want, got))
			}
		}
	}
}

// BenchmarkScan looks for changes among runs that have not changed.
func BenchmarkScan(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := testStore(b)
			makeRuns(b, s, n, 100)
			x := NewIndex(s)
			if _, err := x.Scan(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := x.Scan(); err != nil || len(x.List()) != n {
					b.Fatalf("%d runs, %v", len(x.List()), err)
				}
			}
		})
	}
}
