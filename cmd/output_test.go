package teacmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

// A file that cannot be written any more when the run ends leaves the state
// on stdout.
func TestStateIsNotLostWithItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stdout, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	path := filepath.Join(dir, "gone", "out.json")
	err = (&app{stdout: &output{file: stdout}}).deliver(&runFlags{Output: path}, map[string]any{"x": int64(1)})
	if want := "write " + path + ": "; !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("err = %v, want %s...", err, want)
	}
	got, err := os.ReadFile(stdout.Name())
	if err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"x\": 1\n}\n"; string(got) != want {
		t.Errorf("stdout = %q, want %q", got, want)
	}
}

// writes counts the writes of a stream and keeps the last.
type writes struct {
	mu   sync.Mutex
	n    int
	last string
}

func (w *writes) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n, w.last = w.n+1, string(text)
	return len(text), nil
}

func (w *writes) seen() (int, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n, w.last
}

func TestEventsShareAWriteAndDoNotWaitForMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w writes
		s := &eventStream{w: &w}
		for seq := range int64(3) {
			s.event(flow.Event{Seq: seq, Type: flow.EventNodeStart})
		}
		if n, _ := w.seen(); n > 0 {
			t.Errorf("%d writes before the delay", n)
		}
		time.Sleep(streamDelay) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		if n, last := w.seen(); n != 1 || strings.Count(last, "\n") != 3 {
			t.Errorf("%d writes, the last is %q; want one with three events", n, last)
		}
		s.event(flow.Event{Seq: 4, Type: flow.EventInterrupt})
		if n, _ := w.seen(); n != 2 {
			t.Error("an interrupt waits")
		}
		s.event(flow.Event{Seq: 5, Type: flow.EventRunEnd})
		err := s.end(map[string]any{"x": int64(1)})
		if n, last := w.seen(); err != nil || n != 3 || !strings.Contains(last, `"state":{"x":1}`) {
			t.Errorf("the end wrote %q, %v", last, err)
		}
	})
}
