package driver

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// maxTask bounds the values that one workflow task stores. The server refuses
	// messages above 4 MB, and the task would be repeated forever.
	maxTask = 1 << 20
	// maxValue is the maximum size of a value in Temporal.
	maxValue = 2<<20 - 16<<10
	// localRoom is the expected size of the result of a local activity.
	localRoom = 32 << 10
)

// task counts the bytes that the current workflow task stores. A replay counts the
// same.
type task struct {
	root workflow.Context
	// number is the number of the last event before the task.
	number int
	bytes  int
	// stored reports whether values above maxInline are stored elsewhere.
	stored bool
	waking bool
}

// size returns the room that a value of n bytes needs in a task.
func (t *task) size(n int) int {
	if t.stored && n > maxInline {
		return 0
	}
	return n
}

func (t *task) renew() {
	if n := workflow.GetInfo(t.root).GetCurrentHistoryLength(); n != t.number {
		t.number, t.bytes = n, 0
	}
}

// take waits for a task with room for a value of n bytes.
func (t *task) take(ctx context.Context, n int) {
	n = t.size(n)
	fits := func() bool {
		t.renew()
		return t.bytes == 0 || t.bytes+n <= maxTask
	}
	for !fits() {
		t.wake()
		if workflow.Await(coroutine(ctx), func() bool { return fits() || !t.waking }) != nil {
			break // canceled, which the caller notices
		}
	}
	t.bytes += n
}

// wake makes the server begin another task.
func (t *task) wake() {
	if t.waking {
		return
	}
	t.waking = true
	w, _ := workflow.NewDisconnectedContext(t.root)
	workflow.GoNamed(w, "next task", func(w workflow.Context) {
		_ = workflow.Sleep(w, time.Millisecond) // never canceled
		t.waking = false
	})
}

// local takes room for the result of a local activity; done corrects it to the actual
// size. Do not defer done: when the SDK evicts a run from its cache, it runs the deferred
// functions of the run's coroutines, while another goroutine may replay the run with the
// same information.
func (t *task) local(ctx context.Context) (done func(n int)) {
	t.take(ctx, localRoom)
	began := t.number
	return func(n int) {
		if t.renew(); t.number == began {
			t.bytes -= localRoom
		}
		t.bytes += t.size(n)
	}
}

// limited returns the answer if Temporal can store it, otherwise a failure.
func limited(out answer, stored bool) answer {
	err := tooLarge("the result", len(out.Result), stored)
	if err == nil && out.Failure != nil {
		err = tooLarge("the error", out.Failure.size(), stored)
	}
	if err != nil {
		out.Result, out.Failure = nil, newFailure(err, host.Mask{})
	}
	if err = tooLarge("the result with what the call has logged and streamed", out.size(), stored); err != nil {
		return answer{Failure: newFailure(err, host.Mask{})}
	}
	return out
}

// checkSize returns an error for arguments that are too large for Temporal.
func (c *connection) checkSize(what string, args ...any) error {
	if c.store != nil {
		return nil
	}
	payloads, err := c.data.ToPayloads(args...)
	if err != nil {
		return fmt.Errorf("encode %s: %w", what, err)
	}
	return tooLarge(what, proto.Size(payloads), false)
}

// tooLarge returns an error for a value that is too large for Temporal.
func tooLarge(what string, n int, stored bool) error {
	if stored || n <= maxValue {
		return nil
	}
	return tea.Errorf(tea.ResourceExhausted, "%s has %.1f MB, and Temporal stores values up to 2 MB; store larger ones with --blobs", what, float64(n)/(1<<20))
}
