package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host/checkpoints"
)

// waitingRun returns a server that is stopping, with a run that waits for an answer.
func waitingRun(t *testing.T) (*server, *checkpoints.Dir, *checkpoints.Contents) {
	t.Helper()
	dir := t.TempDir()
	journal, err := os.ReadFile(filepath.FromSlash("../../../../test/compat/v1/waiting.tea"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(id string) *checkpoints.Contents {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, id+".tea"), journal, 0o600); err != nil {
			t.Fatal(err)
		}
		runs, err := checkpoints.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		contents, err := runs.Show(id)
		if err != nil {
			t.Fatal(err)
		}
		return contents
	}
	contents := write(write("any").Header.RunID)
	l := openTest(t, filepath.Join(dir, "serve"))
	t.Cleanup(l.close)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runs, err := checkpoints.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &server{mu: &l.mu, led: l, ctx: ctx, svc: &teacmd.Service{Runs: dir}}, runs, contents
}

// An answer is not accepted if its run was stopped, or asked again, after the question was
// read.
func TestAnswerToAnEarlierQuestionIsRefused(t *testing.T) {
	t.Parallel()
	s, runs, contents := waitingRun(t)
	resume := func() error {
		_, err := s.resume(contents, &resumption{Migrate: true, Answers: []byte(`{"q": "yes"}`), questions: []string{"q"}})
		return err
	}
	if err := resume(); !errors.Is(err, errStopping) { // it would be accepted
		t.Errorf("the current question: %v", err)
	}
	if err := runs.Stop(contents.Header.RunID, "a request"); err != nil {
		t.Fatal(err)
	}
	if err := resume(); !errors.Is(err, errAnswered) {
		t.Errorf("the question of a run that was stopped: %v", err)
	}
}

// A run that is queued because the deadline of its question has passed refuses an
// answer: it would be queued twice.
func TestAnswerAfterTheDeadlineIsRefused(t *testing.T) {
	t.Parallel()
	s, _, contents := waitingRun(t)
	for deadline, want := range map[time.Time]error{{}: errBusy, time.Now().Add(time.Hour): errStopping} {
		it := &item{ID: contents.Header.RunID, Workflow: contents.Header.Workflow, progress: progress{Waiting: true, NotBefore: deadline}}
		s.led.putTest(t, &entry{Item: it})
		if _, err := s.resume(contents, &resumption{Migrate: true, Answers: []byte(`{"q": "yes"}`)}); !errors.Is(err, want) {
			t.Errorf("deadline %s: %v, want %v", deadline, err, want)
		}
	}
}

// A message id that has expired can be used for another answer.
func TestExpiredMessageIDDoesNotRefuseAnAnswer(t *testing.T) {
	t.Parallel()
	s, _, contents := waitingRun(t)
	for until, want := range map[time.Time]error{time.Now().Add(-time.Second): errStopping, time.Now().Add(time.Hour): errRepeated} {
		s.led.putTest(t, &entry{Key: &keyUse{Key: "k", Run: contents.Header.RunID, Until: until}})
		if _, err := s.resume(contents, &resumption{Migrate: true, key: &keyUse{Key: "k"}}); !errors.Is(err, want) {
			t.Errorf("a key until %s: %v, want %v", until, err, want)
		}
	}
}

// An answer that cannot be recorded fails for those who repeat it meanwhile, too.
func TestAnswerThatIsNotRecordedFailsWhenRepeated(t *testing.T) {
	t.Parallel()
	s, _, _ := waitingRun(t)
	s.ctx = t.Context()
	key := &keyUse{Key: s.keyName("w", "k"), Run: "r", Until: time.Now().Add(time.Hour)}
	next := &item{ID: "r", Workflow: "w", Resume: &resumption{key: key}}
	if err := os.RemoveAll(filepath.Dir(s.led.path)); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	repeated := next.done()
	if _, err := s.requeue(next); err == nil {
		t.Fatal("the answer was recorded")
	}
	<-repeated
	other, _, _ := waitingRun(t)
	other.led.putTest(t, &entry{Item: next, Key: key}) // as the repeated message saw it
	c := &a2aCall{s: other, workflow: "w"}
	if a, err := c.repeated("k", ""); err == nil {
		t.Errorf("repeated: %+v", a)
	}
}
