package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
)

var testTime = time.Date(2026, 11, 21, 2, 45, 12, 345678901, time.UTC)

func testHeader() Header {
	return Header{
		Format: FormatVersion, RunID: "run", Workflow: "report", WorkflowFile: "/flows/report.yaml", Digest: "sha256:ab",
		Plugins: map[string]string{"llm": "0.1.0"}, StartedAt: testTime,
	}
}

func testRecords() []Record {
	return []Record{
		{Seq: 1, Time: testTime, Kind: "start", Body: []byte(`{"input":{"n":12345678901234567890}}`)},
		{Seq: 2, Time: testTime.Add(1), Kind: "finish", Path: "fan/b/clean", Body: []byte(`{ "text": "<b>\u0000é" }`)},
		{Seq: 3, Time: testTime.Add(time.Hour), Kind: "finish", Path: "each[3]/fetch"},
		{Seq: 4, Time: testTime, Kind: "status", Path: "ask", Body: []byte(`{"status":"waiting","node":"ask"}`)},
	}
}

func testStore(t testing.TB) *Store {
	t.Helper()
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// createRun makes a run with these records, or a start record where there are
// none, and returns the path of its file.
func createRun(t testing.TB, s *Store, h Header, records ...Record) string {
	t.Helper()
	if len(records) == 0 {
		records = testRecords()[:1]
	}
	j, err := s.Create(h, flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(records...); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return j.Path()
}

// createEmpty makes a journal without records, as a kill could leave one before
// the start record was part of the creation.
func createEmpty(t testing.TB, s *Store, h Header) string {
	t.Helper()
	path := s.journalPath(h.RunID)
	w, err := createJournalFile(path, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustRead(t testing.TB, path string) *Contents {
	t.Helper()
	c, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantRecords(t testing.TB, got, want []Record) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestJournalRoundTrip(t *testing.T) {
	t.Parallel()
	for _, d := range []flow.Durability{flow.DurabilitySync, flow.DurabilityAsync, flow.DurabilityExit} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			s := testStore(t)
			j, err := s.Create(testHeader(), d)
			if err != nil {
				t.Fatal(err)
			}
			all := testRecords()
			if err := j.Append(all[0], all[1]); err != nil {
				t.Fatal(err)
			}
			if err := j.Append(all[2]); err != nil {
				t.Fatal(err)
			}
			if err := j.Sync(); err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}

			j, c, err := s.Open("run", d)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(testHeader(), c.Header); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			wantRecords(t, c.Records, all[:3])
			if err := j.Append(all[3]); err != nil {
				t.Fatal(err)
			}
			if got := j.Seq(); got != 4 {
				t.Errorf("Seq() = %d, want 4", got)
			}
			if err := j.Sync(); err != nil {
				t.Fatal(err)
			}
			size := j.Size()
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			c = mustRead(t, j.Path())
			wantRecords(t, c.Records, all)
			info, err := os.Stat(j.Path())
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() != c.Size || info.Size() != size {
				t.Errorf("file of %d bytes, Contents.Size %d, Journal.Size %d", info.Size(), c.Size, size)
			}
			if info.Mode() != 0o600 {
				t.Errorf("file mode %v, want -rw-------", info.Mode())
			}
			if len(c.Notes) > 0 {
				t.Errorf("notes: %q", c.Notes)
			}
		})
	}
}

func TestAppendSetsTheTime(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	before := time.Now()
	path := createRun(t, s, testHeader(), Record{Kind: "start"})
	if got := mustRead(t, path).Records[0].Time; got.Before(before) || got.After(time.Now()) {
		t.Errorf("time of the record is %v", got)
	}
}

func TestSyncIsDurableWithoutClose(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	j, err := s.Create(testHeader(), flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Append(testRecords()[0]); err != nil {
		t.Fatal(err)
	}
	wantRecords(t, mustRead(t, j.Path()).Records, testRecords()[:1])
}

func TestAsyncWritesInTheBackground(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	synctest.Test(t, func(t *testing.T) {
		j, err := s.Create(testHeader(), flow.DurabilityAsync)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if err := j.Append(testRecords()[0]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * flushInterval) //nolint:forbidigo // of the bubble's clock
		synctest.Wait()
		wantRecords(t, mustRead(t, j.Path()).Records, testRecords()[:1])
	})
}

func TestAsyncCloseWritesTheQueue(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	j, err := s.Create(testHeader(), flow.DurabilityAsync)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(testRecords()...); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	wantRecords(t, mustRead(t, j.Path()).Records, testRecords())
}

func dirNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestExitLeavesNothingWithoutSync(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Journal) error{"close": (*Journal).Close, "discard": (*Journal).Discard} {
		for size, body := range map[string]int{"small": 10, "spilled": spillSize / 4} {
			t.Run(name+" "+size, func(t *testing.T) {
				t.Parallel()
				s := testStore(t)
				j, err := s.Create(testHeader(), flow.DurabilityExit)
				if err != nil {
					t.Fatal(err)
				}
				for range 7 {
					if err := j.Append(Record{Kind: "finish", Body: make([]byte, body)}); err != nil {
						t.Fatal(err)
					}
				}
				spilled := len(dirNames(t, s.Dir())) > 0
				if want := size == "spilled"; spilled != want {
					t.Errorf("a file is there before the end: %t, want %t", spilled, want)
				}
				if err := end(j); err != nil {
					t.Fatal(err)
				}
				if names := dirNames(t, s.Dir()); len(names) > 0 {
					t.Errorf("left behind: %q", names)
				}
			})
		}
	}
}

func TestExitSpillsInOrder(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	j, err := s.Create(testHeader(), flow.DurabilityExit)
	if err != nil {
		t.Fatal(err)
	}
	const records = 9
	for i := range records {
		body := make([]byte, spillSize/3)
		body[0] = byte('a' + i)
		if err := j.Append(Record{Kind: "finish", Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	got := mustRead(t, j.Path()).Records
	if len(got) != records {
		t.Fatalf("%d records, want %d", len(got), records)
	}
	for i, r := range got {
		if r.Body[0] != byte('a'+i) {
			t.Errorf("record %d is %q", r.Seq, r.Body[0])
		}
	}
}

func TestDiscardCompletesAPromisedFile(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	j, err := s.Create(testHeader(), flow.DurabilityExit)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(testRecords()[0]); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(statusRecord(flow.Done, "")); err != nil {
		t.Fatal(err)
	}
	if err := j.Discard(); err != nil {
		t.Fatal(err)
	}
	info, err := s.Info("run")
	if err != nil {
		t.Fatal(err)
	}
	if info.Status != flow.Done || info.Records != 2 {
		t.Errorf("status %q with %d records, want done with 2", info.Status, info.Records)
	}
}

func TestOffWritesNothing(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	j, err := s.Create(testHeader(), flow.DurabilityOff)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{func() error { return j.Append(testRecords()...) }, j.Sync, j.Discard, j.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if j.Path() != "" || j.RunID() != "run" {
		t.Errorf("Path() = %q, RunID() = %q", j.Path(), j.RunID())
	}
	if names := dirNames(t, s.Dir()); len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}
}

func TestClosedJournalRefuses(t *testing.T) {
	t.Parallel()
	for _, d := range []flow.Durability{flow.DurabilitySync, flow.DurabilityAsync, flow.DurabilityExit} {
		s := testStore(t)
		j, err := s.Create(testHeader(), d)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := j.Append(testRecords()...); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: Append after Close: %v", d, err)
		}
		if err := j.Sync(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: Sync after Close: %v", d, err)
		}
		if err := j.Close(); err != nil {
			t.Errorf("%s: second Close: %v", d, err)
		}
	}
}

func TestCreateTwiceIsRefused(t *testing.T) {
	t.Parallel()
	for _, d := range []flow.Durability{flow.DurabilitySync, flow.DurabilityExit} {
		s := testStore(t)
		path := createRun(t, s, testHeader(), testRecords()...)
		if _, err := s.Create(testHeader(), d); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v, want that the run exists", d, err)
		}
		wantRecords(t, mustRead(t, path).Records, testRecords())
	}
}

func TestParseDurability(t *testing.T) {
	t.Parallel()
	if d, err := flow.ParseDurability("async"); d != flow.DurabilityAsync || err != nil {
		t.Errorf("async: %q, %v", d, err)
	}
	_, err := flow.ParseDurability("synk")
	if want := `unknown durability "synk": expected exit, sync, async or off; did you mean "sync"?`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
