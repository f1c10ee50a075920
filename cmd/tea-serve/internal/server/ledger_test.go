package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// openTest opens the ledger of a directory.
func openTest(t *testing.T, dir string) *ledger {
	t.Helper()
	l, err := openLedger(filepath.Join(dir, "state.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// put makes changes and waits for the disk.
func (l *ledger) putTest(t *testing.T, entries ...*entry) {
	t.Helper()
	l.mu.Lock()
	b, err := l.add(true, entries...)
	l.mu.Unlock()
	if err == nil {
		err = b.wait()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// accept returns an entry for a run.
func acceptTest(id string) *entry {
	return &entry{Item: &item{ID: id, Workflow: "w", At: time.Unix(0, 0).UTC(), progress: progress{ID: id}}}
}

// ids returns the runs that have not ended.
func (l *ledger) ids() map[string]bool {
	ids := map[string]bool{}
	for id := range l.state.items {
		ids[id] = true
	}
	return ids
}

func TestLedgerIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openTest(t, dir)
	at, today := time.Unix(1_000_000, 0).UTC(), day(time.Now())
	l.putTest(t, acceptTest("a"), &entry{Key: &keyUse{Key: "k", Run: "a", Until: at.AddDate(1000, 0, 0)}})
	l.putTest(t, acceptTest("b"), &entry{Fired: &firing{"t", at}}, &entry{Paused: &pausing{"t", at}}, &entry{Paused: &pausing{"u", at}}, &entry{Paused: &pausing{Trigger: "u"}})
	l.putTest(t, &entry{Try: &progress{ID: "b", Attempts: 2, Parked: "why"}}, &entry{End: "a"})
	l.putTest(t, &entry{File: &fileSeen{"t", "x", "1"}}, &entry{File: &fileSeen{"t", "y", "1"}}, &entry{File: &fileSeen{"t", "x", ""}})
	l.putTest(t, &entry{Used: &dayUse{Day: today, Workflow: "w", Tokens: 5}}, &entry{Used: &dayUse{Day: "2026-01-01", Workflow: "w"}},
		&entry{Used: &dayUse{Day: today, Workflow: "w", Tokens: 7, USD: 0.75, Runs: 2, Failed: 1, Last: &lastRun{"a", "done", at}}})
	want := l.state
	l.close()
	for range 2 { // the first time from the log, then compacted
		l = openTest(t, dir)
		if diff := cmp.Diff(want, l.state, cmp.AllowUnexported(ledgerState{}, item{}), cmpopts.EquateComparable()); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		l.close()
	}
}

// A key that was used while the clock was ahead does not refuse runs for longer than
// others, and still refuses a second run.
func TestKeysOfAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openTest(t, dir)
	ahead := time.Now().Round(0).AddDate(1, 0, 0)
	l.putTest(t, &entry{Key: &keyUse{Key: "k", Run: "a", At: ahead, Until: ahead.Add(time.Hour)}})
	l.close()
	var until time.Time
	for range 2 { // the first time from the log, then compacted
		before := time.Now().Round(0)
		l = openTest(t, dir)
		k := l.state.keys["k"]
		if k == nil || k.Until.Before(before) || k.Until.After(time.Now().Add(time.Hour)) {
			t.Errorf("key: %+v", k)
		} else if !until.IsZero() && !k.Until.Equal(until) {
			t.Errorf("the key counts until %s, and until %s after another start", until, k.Until)
		} else {
			until = k.Until
		}
		l.close()
	}
}

func TestTornTailIsCutOff(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	dir := t.TempDir()
	l := openTest(t, dir)
	start := l.size
	l.putTest(t, acceptTest("a"), &entry{Key: &keyUse{Key: "k", Run: "a"}})
	one := l.size
	l.putTest(t, acceptTest("b"))
	l.close()
	path := filepath.Join(dir, "state.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := start; n <= int64(len(text)); n++ {
		want := map[string]bool{}
		if n >= one {
			want["a"] = true
		}
		if n == int64(len(text)) {
			want["b"] = true
		}
		torn := t.TempDir()
		for _, tail := range []string{"", "\x00\x00\x00", "x\n\x00\n"} {
			if tail != "" && n%9 != 0 {
				continue
			}
			if err := os.WriteFile(filepath.Join(torn, "state.jsonl"), append(append([]byte{}, text[:n]...), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			l := openTest(t, torn)
			if diff := cmp.Diff(want, l.ids()); diff != "" || want["a"] != (l.state.keys["k"] != nil) {
				t.Errorf("%d bytes and %q: keys %v, runs (-want +got):\n%s", n, tail, l.state.keys, diff)
			}
			l.putTest(t, acceptTest("c"))
			l.close()
			l = openTest(t, torn)
			if !l.ids()["c"] {
				t.Errorf("%d bytes and %q: a run is missing that was added later", n, tail)
			}
			l.close()
		}
	}
}

func TestDamageIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openTest(t, dir)
	at := l.size
	l.putTest(t, acceptTest("a"))
	l.putTest(t, acceptTest("b"))
	l.close()
	path := filepath.Join(dir, "state.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[at+20] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = openLedger(path)
	if want := fmt.Sprintf("%s is damaged at byte %d; move it away to start without the requests and positions in it", path, at); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(text) {
		t.Errorf("the file was changed: %v", err)
	}
	newer, err := appendLine(nil, &entry{Format: ledgerFormat + 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLedger(path); err == nil {
		t.Error("a file of a newer version was accepted")
	}
}

func TestLedgerIsCompacted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openTest(t, dir)
	var wg sync.WaitGroup
	const writers, each = 4, 3000
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("run-%d-%d", w, i)
				entries := []*entry{acceptTest(id), {End: id}}
				if i%1000 == 0 {
					entries = entries[:1]
				}
				l.mu.Lock()
				_, err := l.add(false, entries...)
				l.mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if i%100 == 0 {
					l.putTest(t)
				}
			}
		})
	}
	wg.Wait()
	l.putTest(t)
	l.close()
	if info, err := os.Stat(l.path); err != nil || info.Size() > 2*compactSize {
		t.Errorf("size of the file: %v, %v", info, err)
	}
	l = openTest(t, dir)
	defer l.close()
	if got := len(l.ids()); got != writers*each/1000 {
		t.Errorf("%d runs have not ended, want %d", got, writers*each/1000)
	}
}

func TestForeignFileIsNotReplaced(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "zeros": string(make([]byte, 500)), "another file": "{\"my\": \"notes\"}\n{\"more\": 2}\n", "a line": "notes",
		"no first line": "4f2a 4711\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "state.jsonl")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := openLedger(path)
			if want := path + " is not a state file of tea serve, or its beginning is damaged; move it away to start without the requests and positions in it"; err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != text {
				t.Errorf("the file was changed: %q, %v", after, err)
			}
		})
	}
}

func TestTornTailIsMeasured(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openTest(t, dir)
	l.putTest(t, acceptTest("a"))
	l.close()
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(strings.Repeat("x", 4096))
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	l = openTest(t, dir)
	defer l.close()
	if l.cut != 4096 {
		t.Errorf("%d bytes were cut off", l.cut)
	}
}

// A power cut can leave a later change and not an earlier one, if nobody waited for
// either.
func TestChangesThatNobodyWaitedForCanBeTorn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openTest(t, dir)
	l.putTest(t, acceptTest("a"))
	l.putTest(t, acceptTest("b"))
	from := l.size
	for _, id := range []string{"c", "d"} {
		l.mu.Lock()
		b, err := l.add(false, acceptTest(id))
		l.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.wait(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(l.path) // with the room of a server that was killed
	if err != nil {
		t.Fatal(err)
	}
	l.close()
	for n, want := range map[int64]map[string]bool{from: {"a": true, "b": true}, from + 40: {"a": true, "b": true}} {
		torn := t.TempDir()
		damaged := append([]byte{}, text...)
		clear(damaged[n : n+20])
		if err := os.WriteFile(filepath.Join(torn, "state.jsonl"), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		l := openTest(t, torn)
		if diff := cmp.Diff(want, l.ids()); diff != "" {
			t.Errorf("byte %d: runs (-want +got):\n%s", n, diff)
		}
		l.putTest(t, acceptTest("e"))
		l.close()
		if l = openTest(t, torn); !l.ids()["e"] {
			t.Errorf("byte %d: a run is missing that was added later", n)
		}
		l.close()
	}
}

// Changes that nobody waits for reach the disk also while further ones are made.
func TestLazyChangesAreSyncedInTime(t *testing.T) {
	t.Parallel()
	l := openTest(t, t.TempDir())
	defer l.close()
	start := l.size
	late := time.Now().Add(30 * time.Second)
	for time.Now().Before(late) {
		l.mu.Lock()
		b, err := l.add(false, &entry{End: "none"})
		l.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.wait(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(l.path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text[start:]), `"safe"`) {
			return
		}
	}
	t.Error("nothing reached the disk within 30 s")
}

func TestResultsThatWaitForABrokerAreBounded(t *testing.T) {
	t.Parallel()
	q := new(results)
	n := 0
	for q.Enqueue(strings.NewReader(strings.Repeat("x", 1<<20))) == nil {
		n++
	}
	if n != maxResults>>20 {
		t.Errorf("%d results", n)
	}
	e, err := q.Peek()
	if err == nil {
		err = e.Remove()
	}
	if err == nil {
		err = q.Enqueue(strings.NewReader("y"))
	}
	if err != nil {
		t.Error(err)
	}
}
