package host

import (
	"context"
	"iter"
	"sync"

	"github.com/the-edge-agent/tea/host/flow"
)

// Stream is a run whose events are read in a loop; see [Workflow.Stream]. Its methods
// must not be called concurrently.
type Stream struct {
	start  func()
	cancel context.CancelFunc
	events chan flow.Event
	// res and err are set before events is closed.
	res *flow.Result
	err error
}

// Stream returns a run that begins at the first call of [Stream.Events] or
// [Stream.Result]. The run waits while an event is not read; RunOptions.Events receives
// each event before the loop does.
func (wf *Workflow) Stream(ctx context.Context, o RunOptions) *Stream {
	s := &Stream{events: make(chan flow.Event)}
	ctx, s.cancel = context.WithCancel(ctx)
	also := o.Events
	o.Events = func(e flow.Event) {
		if also != nil {
			also(e)
		}
		select {
		case s.events <- e:
		case <-ctx.Done():
		}
	}
	run := func() {
		defer close(s.events)
		defer s.cancel()
		s.res, s.err = wf.Run(ctx, o)
	}
	s.start = sync.OnceFunc(func() { go run() })
	return s
}

// Events yields the events of the run in order, until it ends. Leaving the loop cancels the
// run and waits for its end. A second loop yields nothing.
func (s *Stream) Events() iter.Seq[flow.Event] {
	return func(yield func(flow.Event) bool) {
		s.start()
		defer func() {
			s.cancel()
			for range s.events {
			}
		}()
		for e := range s.events {
			if !yield(e) {
				return
			}
		}
	}
}

// Result discards the events that were not read, waits for the end of the run and returns
// its result and error, as [Workflow.Run] does.
func (s *Stream) Result() (*flow.Result, error) {
	s.start()
	for range s.events {
	}
	return s.res, s.err
}
