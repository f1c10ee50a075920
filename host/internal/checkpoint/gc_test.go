package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
)

const day = 24 * time.Hour

// agedRun makes a run that was left with this status so long before testTime,
// with size bytes of events.
func agedRun(t *testing.T, s *Store, id string, status flow.Status, age time.Duration, events int) {
	t.Helper()
	h := testHeader()
	h.RunID, h.StartedAt = id, testTime.Add(-age)
	r := statusRecord(status, "x")
	r.Time = testTime.Add(-age)
	start := Record{Kind: KindStart, Time: r.Time}
	createRun(t, s, h, start, r)
	if events > 0 {
		agedEvents(t, s, id, age, events)
	}
}

func agedEvents(t *testing.T, s *Store, id string, age time.Duration, size int) {
	t.Helper()
	if err := os.WriteFile(s.EventsPath(id), make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(s.EventsPath(id), testTime.Add(-age), testTime.Add(-age)); err != nil {
		t.Fatal(err)
	}
}

func TestGC(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		policy Policy
		want   []string
	}{
		"no limits":       {Policy{}, nil},
		"default":         {DefaultPolicy(), []string{"done-40", "failed-100", "lone-50", "waiting-100"}},
		"count":           {Policy{MaxCount: 2}, []string{"done-3", "done-40", "lone-50"}},
		"age":             {Policy{MaxAge: 2*day + time.Hour}, []string{"done-3", "done-40", "lone-50"}},
		"bytes":           {Policy{MaxBytes: 30_000}, []string{"done-3", "done-40", "lone-50"}},
		"bytes for none":  {Policy{MaxBytes: 1}, []string{"done-1", "done-2", "done-3", "done-40", "lone-50"}},
		"unfinished only": {Policy{MaxUnfinishedAge: day}, []string{"failed-100", "stopped-80", "waiting-100"}},
		// One that waits is somebody's business, however many fail.
		"none done":        {Policy{MaxCount: -1}, []string{"done-1", "done-2", "done-3", "done-40", "lone-50"}},
		"none unfinished":  {Policy{MaxUnfinished: -1}, []string{"failed-100", "stopped-80"}},
		"unfinished count": {Policy{MaxUnfinished: 1}, []string{"failed-100"}},
		"unfinished bytes": {Policy{MaxUnfinishedBytes: 1}, []string{"failed-100"}},
		"unfinished room":  {Policy{MaxUnfinishedBytes: 1 << 20}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testStore(t)
			agedRun(t, s, "done-1", flow.Done, day, 10_000)
			agedRun(t, s, "done-2", flow.Done, 2*day, 10_000)
			agedRun(t, s, "done-3", flow.Done, 3*day, 10_000)
			agedRun(t, s, "done-40", flow.Done, 40*day, 10)
			agedRun(t, s, "waiting-100", flow.Waiting, 100*day, 0)
			agedRun(t, s, "failed-100", flow.Failed, 100*day, 0)
			agedRun(t, s, "stopped-80", flow.Stopped, 80*day, 0)
			agedEvents(t, s, "lone-50", 50*day, 10)
			if err := os.WriteFile(s.journalPath("broken"), []byte("?"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(s.journalPath("broken"), testTime.Add(-500*day), testTime.Add(-500*day)); err != nil {
				t.Fatal(err)
			}

			before := dirNames(t, s.Dir())
			got, err := s.GC(c.policy, testTime)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
			want := slices.DeleteFunc(before, func(name string) bool {
				return slices.ContainsFunc(c.want, func(id string) bool { return name == id+journalSuffix || name == id+eventsSuffix })
			})
			if diff := cmp.Diff(want, dirNames(t, s.Dir())); diff != "" {
				t.Errorf("files that stay (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGCLeavesRunsInUse(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	agedRun(t, s, "done", flow.Done, 300*day, 0)
	agedRun(t, s, "waiting", flow.Waiting, 300*day, 0)
	agedEvents(t, s, "lone", 300*day, 0)
	for _, id := range []string{"done", "waiting"} {
		j, _, err := s.Open(id, flow.DurabilitySync)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
	}
	events, err := s.OpenEvents("lone")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	before := dirNames(t, s.Dir())
	if got, err := s.GC(Policy{MaxAge: day, MaxUnfinishedAge: day}, testTime); len(got) > 0 || err != nil {
		t.Errorf("removed %q, %v", got, err)
	}
	if diff := cmp.Diff(before, dirNames(t, s.Dir())); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestGCRemovesLeftoversOfACrash(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	now := time.Now()
	for name, age := range map[string]time.Duration{".old.tea.tmp": 2 * time.Hour, ".new.tea.tmp": time.Minute, "notes.tmp": 2 * time.Hour} {
		path := filepath.Join(s.Dir(), name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.GC(DefaultPolicy(), now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{".new.tea.tmp", "notes.tmp"}, dirNames(t, s.Dir())); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestChangedFileIsNotRemoved(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	path := createRun(t, s, testHeader())
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	appendBytes(t, path, []byte("x"))
	if gone, err := removeUnchangedFile(path, before); gone || err != nil {
		t.Errorf("gone %t, %v; want that it stays", gone, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
