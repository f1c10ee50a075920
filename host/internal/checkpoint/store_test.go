package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
)

func TestOpenStoreMakesAPrivateDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	if _, err := ViewStore(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ViewStore: %v, want that it is not there", err)
	}
	if _, err := OpenStore(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, want 0700", info.Mode())
	}
}

func TestOpenStoreOnAFileIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "runs")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(string) (*Store, error){"open": OpenStore, "view": ViewStore} {
		if _, err := open(file); !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want that %s is not a directory", name, err, file)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	for _, id := range []string{"20261121-024512-aaaaaa", "20261121-024512-aabbbb", "20261122-000000-cccccc", "2026"} {
		h := testHeader()
		h.RunID = id
		createRun(t, s, h)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.Dir(), link); err != nil {
		t.Fatal(err)
	}
	full := s.journalPath("20261122-000000-cccccc")
	for _, run := range []string{
		"20261122-000000-cccccc", "20261122", "20261122-000000-cccccc.tea", full,
		filepath.Join(link, "20261122-000000-cccccc.tea"),
	} {
		if got, err := s.Find(run); got != full || err != nil {
			t.Errorf("Find(%q) = %q, %v", run, got, err)
		}
	}
	if got, err := s.Find("2026"); got != s.journalPath("2026") || err != nil {
		t.Errorf("a whole id that others begin with: %q, %v", got, err)
	}

	var ambiguous *AmbiguousError
	if _, err := s.Find("20261121"); !errors.As(err, &ambiguous) {
		t.Fatalf("got %v, want an AmbiguousError", err)
	}
	if diff := cmp.Diff([]string{"20261121-024512-aaaaaa", "20261121-024512-aabbbb"}, ambiguous.Matches); diff != "" {
		t.Errorf("matches (-want +got):\n%s", diff)
	}
	for _, run := range []string{"2027", "2027.tea", filepath.Join(s.Dir(), "2027.tea")} {
		if _, err := s.Find(run); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Find(%q): %v, want that it is not there", run, err)
		}
	}
}

// The run of the same name in this store is another one.
func TestFileOfAnotherStoreIsRefused(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	createRun(t, s, testHeader())
	other := createRun(t, testStore(t), testHeader())
	if got, err := s.Find(other); err == nil {
		t.Errorf("Find(%q) = %q", other, got)
	}
}

func TestNamesOutsideOfTheStoreAreRefused(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	outside := testStore(t)
	path := createRun(t, outside, testHeader())
	for _, run := range []string{
		"", ".", "..", "../run.tea", "a/../../run.tea", path, "/etc/passwd", "/dev/null", "run\x00.tea", "..tea", "-x", "a b",
		filepath.Join(s.Dir(), "..", filepath.Base(outside.Dir()), "run.tea"),
	} {
		if got, err := s.Find(run); err == nil {
			t.Errorf("Find(%q) = %q", run, got)
		}
	}
	for _, id := range []string{"", "../x", "a/b", ".hidden", "run.events", "-x", strings.Repeat("x", 200)} {
		h := testHeader()
		h.RunID = id
		for _, d := range []flow.Durability{flow.DurabilitySync, flow.DurabilityExit, flow.DurabilityOff} {
			if _, err := s.Create(h, d); err == nil {
				t.Errorf("a run %q was created (%s)", id, d)
			}
		}
		if _, err := s.OpenEvents(id); err == nil {
			t.Errorf("events of a run %q were made", id)
		}
	}
	if names := dirNames(t, s.Dir()); len(names) > 0 {
		t.Errorf("files were made: %q", names)
	}
}

// Between the opening and the locking of a file, somebody may remove the run.
func TestRunRemovedWhileItIsOpened(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+"x"), os.WriteFile(path, nil, 0o600))
		},
	} {
		path := createRun(t, testStore(t), testHeader())
		f, err := openJournalFile(path, os.O_RDWR)
		if err != nil {
			t.Fatal(err)
		}
		defer releaseFile(f)
		if err := remove(path); err != nil {
			t.Fatal(err)
		}
		if _, _, err := recoverJournal(f, path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want that the run is not there", name, err)
		}
	}
}

func TestPipeInPlaceOfARunIsRefused(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	if err := syscall.Mkfifo(s.journalPath("run"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Open("run", flow.DurabilitySync); err == nil {
		t.Error("a pipe was opened as a run")
	}
	infos, err := s.List()
	if err != nil || len(infos) != 1 || infos[0].Problem == "" {
		t.Errorf("List: %+v, %v", infos, err)
	}
}

func TestNewRunID(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 2, 45, 12, 0, time.UTC)
	seen := map[string]bool{}
	for range 1000 {
		id := NewRunID(at)
		if err := checkRunID(id); err != nil || seen[id] || !strings.HasPrefix(id, "20261121-024512-") || len(id) != 22 {
			t.Fatalf("NewRunID gave %q (%v)", id, err)
		}
		seen[id] = true
	}
	ids := []string{NewRunID(at.Add(time.Second)), NewRunID(at.Add(time.Hour)), NewRunID(at.Add(200 * 24 * time.Hour))}
	if !slices.IsSorted(ids) {
		t.Errorf("later ids do not sort later: %q", ids)
	}
}

func TestRemoveAlsoRemovesTheEvents(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	createRun(t, s, testHeader())
	events, err := s.OpenEvents("run")
	if err != nil {
		t.Fatal(err)
	}
	if err := events.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("run"); err != nil {
		t.Fatal(err)
	}
	if names := dirNames(t, s.Dir()); len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}
	if err := s.Remove("run"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("second Remove: %v", err)
	}
}

func TestFork(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	createRun(t, s, testHeader(), testRecords()...)
	given := Record{Kind: "given", Time: testTime, Body: []byte(`{"values":{"n":1}}`)}
	source := mustRead(t, s.journalPath("run"))
	j, c, err := s.Fork(source, 2, "forked", flow.DurabilitySync, given)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	given.Seq = 3
	wantRecords(t, mustRead(t, j.Path()).Records, append(testRecords()[:2], given))
	want := testHeader()
	want.RunID, want.ParentRun, want.ParentSeq = "forked", "run", 2
	want.StartedAt = c.Header.StartedAt
	if diff := cmp.Diff(want, c.Header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	wantRecords(t, c.Records, append(testRecords()[:2], given))
	if err := j.Append(Record{Kind: "other"}); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, j.Path()).Records; len(got) != 4 || got[3].Seq != 4 {
		t.Errorf("after an append: %+v", got)
	}
	wantRecords(t, mustRead(t, s.journalPath("run")).Records, testRecords())

	for name, fork := range map[string]struct {
		at uint64
		id string
	}{
		"beyond the last record": {5, "x"},
		"before the first":       {0, "x"},
		"onto itself":            {1, "run"},
		"bad name":               {1, "../x"},
	} {
		if _, _, err := s.Fork(source, fork.at, fork.id, flow.DurabilitySync); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	wantRecords(t, mustRead(t, s.journalPath("run")).Records, testRecords())
}
