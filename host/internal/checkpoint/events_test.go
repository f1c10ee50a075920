package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func readSeqs(t *testing.T, path string, after uint64) []uint64 {
	t.Helper()
	var seqs []uint64
	err := (&EventReader{Path: path, After: after}).Read(func(seq uint64, line []byte) error {
		if want := fmt.Sprintf(`{"seq":%d,`, seq); !strings.HasPrefix(string(line), want) {
			t.Errorf("line %q, want one that begins with %s", line, want)
		}
		seqs = append(seqs, seq)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seqs
}

func appendEvents(t *testing.T, l *EventLog, seqs ...uint64) {
	t.Helper()
	for _, seq := range seqs {
		if err := l.Append(seq, fmt.Appendf(nil, `{"seq":%d,"event":"log"}`, seq)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFlushSoonGroupsEvents(t *testing.T) {
	t.Parallel()
	store := testStore(t)
	synctest.Test(t, func(t *testing.T) {
		l, err := store.OpenEvents("soon")
		if err != nil {
			t.Fatal(err)
		}
		last := uint64(0)
		add := func(n int) (seen int) {
			for range n {
				last++
				appendEvents(t, l, last)
				if err := l.FlushSoon(); err != nil {
					t.Fatal(err)
				}
			}
			return len(readSeqs(t, l.Path(), 0))
		}
		if seen := add(MaxWaitingEvents - 1); seen > 0 {
			t.Errorf("%d events were written one by one", seen)
		}
		if seen := add(1); seen != MaxWaitingEvents {
			t.Errorf("%d events are written, want all: no more may wait", seen)
		}
		before := add(1)
		time.Sleep(eventDelay) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		if seen := add(0); seen != before+1 {
			t.Errorf("%d events are written after the delay, want %d", seen, before+1)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEventsRoundTrip(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	l, err := s.OpenEvents("run")
	if err != nil {
		t.Fatal(err)
	}
	appendEvents(t, l, 1, 2, 3)
	if got := readSeqs(t, l.Path(), 0); len(got) > 0 {
		t.Errorf("before Flush: %v", got)
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint64{2, 3}, readSeqs(t, l.Path(), 1)); diff != "" {
		t.Errorf("events after 1 (-want +got):\n%s", diff)
	}
	var locked *InUseError
	if _, err := s.OpenEvents("run"); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("second owner: %v, want an InUseError", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(4, nil); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}

	l, err = s.OpenEvents("run")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.LastSeq() != 3 {
		t.Errorf("LastSeq() = %d, want 3", l.LastSeq())
	}
	appendEvents(t, l, 4)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint64{1, 2, 3, 4}, readSeqs(t, s.EventsPath("run"), 0)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(l.Path()); err != nil || info.Size() != l.Size() {
		t.Errorf("file of %d bytes, Size() = %d", info.Size(), l.Size())
	}
}

func TestEventsRecoverFromEveryCut(t *testing.T) {
	t.Parallel()
	whole := "{\"seq\":7,\"event\":\"log\"}\n{\"seq\":8,\"event\":\"log\"}\n{\"seq\":9,\"event\":\"log\"}\n"

	for name, tail := range map[string]string{"cut": "", "zeros": strings.Repeat("\x00", 600), "zeros and more": "\x00\x00\n\n{\"seq\"\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testStore(t)
			for cut := range len(whole) + 1 {
				if err := os.WriteFile(s.EventsPath("run"), []byte(whole[:cut]+tail), 0o600); err != nil {
					t.Fatal(err)
				}
				l, err := s.OpenEvents("run")
				if err != nil {
					t.Fatal(err)
				}
				n := strings.Count(whole[:cut], "\n")
				want := []uint64{7, 8, 9}[:n]
				var last uint64
				if n > 0 {
					last = want[n-1]
				}
				if l.LastSeq() != last {
					t.Errorf("cut at %d: LastSeq() = %d, want %d", cut, l.LastSeq(), last)
				}
				appendEvents(t, l, 20)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(append(want[:n:n], 20), readSeqs(t, s.EventsPath("run"), 0)); diff != "" {
					t.Errorf("cut at %d: events (-want +got):\n%s", cut, diff)
				}
			}
		})
	}
}

func TestLastLineOfLongLines(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 65_000, 65_536, 70_000, 200_000} {
		fill := strings.Repeat("x", size)
		lines := fmt.Sprintf("{\"seq\":1,\"f\":%q}\n{\"seq\":2,\"f\":%q}\n", fill, fill)
		for _, torn := range []string{"", "{", fill, fill + "\n" + fill} {
			end, seq, err := lastWholeLine(strings.NewReader(lines+torn), int64(len(lines)+len(torn)))
			if end != int64(len(lines)) || seq != 2 || err != nil {
				t.Errorf("lines of %d and a rest of %d: end %d, seq %d, %v; want %d, 2", size, len(torn), end, seq, err, len(lines))
			}
		}
	}
}

func TestReadEventsReportsDamage(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	if err := os.WriteFile(s.EventsPath("run"), []byte("{\"seq\":1}\nrubbish\n{\"seq\":3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	err := (&EventReader{Path: s.EventsPath("run")}).Read(func(uint64, []byte) error { return nil })
	if !errors.As(err, &corrupt) || corrupt.Offset != 10 {
		t.Errorf("got %v, want damage at byte 10", err)
	}
	if err := (&EventReader{Path: s.EventsPath("run")}).Read(func(uint64, []byte) error { return io.EOF }); err != io.EOF {
		t.Errorf("got %v, want the callback's error", err)
	}
	if err := (&EventReader{Path: s.EventsPath("none")}).Read(nil); err != nil {
		t.Errorf("no file: %v", err)
	}
}

// A reader goes on where it stopped, with what was written since.
func TestEventReaderReturnsWhatWasAdded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events")
	r := EventReader{Path: path, After: 2}
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		add  string
		want []uint64
	}{
		{"", nil},
		{`{"seq":1,"event":"log"}` + "\n", nil},
		{`{"seq":2,"event":"log"}` + "\n" + `{"seq":3,"event":"log"}` + "\n" + `{"seq":4,"ev`, []uint64{3}},
		{`ent":"log"}` + "\n", []uint64{4}},
		{"", nil},
	} {
		add(step.add)
		var got []uint64
		if err := r.Read(func(seq uint64, _ []byte) error { got = append(got, seq); return nil }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("after %q: %s", step.add, diff)
		}
	}
}
