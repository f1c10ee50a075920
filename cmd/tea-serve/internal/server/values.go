package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

const (
	// pollTimeout bounds a call of a poll.
	pollTimeout = 30 * time.Second
	// streamTime is the deadline of a stream, which has none: calls without a deadline
	// end when their plugin is silent.
	streamTime = 10 * 365 * 24 * time.Hour
	// streamSettled is the time after which a stream without values counts as
	// working.
	streamSettled = 15 * time.Second
	// maxShownValue is the size of a value that is shown.
	maxShownValue = 200
)

// streamBackoff are the waits before a stream is started again.
var streamBackoff = backoff.Policy{Base: time.Second, Max: time.Minute, Multiplier: 2, Jitter: 0.2}

// The status of an event.
const (
	statusValue     = "value"
	statusFailed    = "failed"
	statusRecovered = "recovered"
)

// watches are the triggers that watch values, each with a goroutine.
type watches struct {
	s *server

	mu   sync.Mutex
	open map[string]*watch
}

// watch watches the values of a trigger.
type watch struct {
	s      *server
	t      *trigger
	values *host.Values
	// bundle is the plugin of the action.
	bundle string
	stop   context.CancelFunc
	done   chan struct{}

	// Only the goroutine uses these.
	edge           edge
	last, previous any
	failures       int

	mu sync.Mutex
	// problem is why there is no value; "" if there is.
	problem string
	// shown is the last value as text.
	shown string
	// again ends the call of a stream, which then starts again; generation is the
	// process of its plugin, 0 if it is not known.
	again      context.CancelCauseFunc
	generation int
}

// reading is a value or the failure to read one.
type reading struct {
	value any
	err   error
	// settled reports whether a stream works, although it has sent no value.
	settled bool
}

// update starts and ends watches after a change of the triggers or plugins.
func (c *watches) update() {
	c.mu.Lock()
	defer c.mu.Unlock()
	current := map[string]bool{}
	streams := false
	for _, t := range c.s.catalog.triggers(host.TriggerPoll, host.TriggerStream) {
		current[t.id] = true
		streams = streams || t.Kind == host.TriggerStream
		before := c.open[t.id]
		if before != nil && before.t == t {
			continue
		}
		v := c.s.catalog.use(t.workflow)
		if v != t.v { // another version is served by now
			if v != nil {
				v.uses.Done()
			}
			continue
		}
		c.open[t.id] = c.s.startWatch(t, before)
	}
	for id, w := range c.open {
		if !current[id] {
			w.stop()
			delete(c.open, id)
		}
	}
	if streams {
		c.restartStreams()
	}
}

// restartStreams starts the streams of replaced plugins again: the process of the
// version before lives as long as its calls.
func (c *watches) restartStreams() {
	generations := c.s.generations()
	for _, w := range c.open {
		now := generations[w.bundle]
		w.mu.Lock()
		if w.again != nil && w.generation != 0 && w.generation != now {
			w.again(errReplaced)
			w.again = nil
		}
		w.generation = now
		w.mu.Unlock()
	}
}

// generations returns the numbers of the processes of the plugins that have one.
func (s *server) generations() map[string]int {
	numbers := map[string]int{}
	if list, ok := s.svc.PluginStatus().([]subproc.Status); ok {
		for _, p := range list {
			numbers[p.Name] = p.Generation
		}
	}
	return numbers
}

// startWatch starts a watch, which goes on from the one before it, if there is one.
// The caller uses the version of the trigger; the watch ends the use.
func (s *server) startWatch(t *trigger, before *watch) *watch {
	ctx, stop := context.WithCancel(s.ctx)
	w := &watch{s: s, t: t, stop: stop, done: make(chan struct{}), edge: edge{ValuesConfig: t.Values}}
	if before != nil {
		before.stop()
	}
	for _, a := range t.v.Actions() {
		if a.Name == t.Values.Call.Uses.Value {
			w.bundle = a.Bundle
		}
	}
	s.background.Go(func() {
		defer close(w.done)
		defer t.v.uses.Done()
		_ = os.MkdirAll(s.dataDir(t.workflow), 0o700) // file actions need it before the first run, and report a failure
		if before != nil {
			<-before.done
			w.resume(before)
		} else {
			w.restore()
		}
		if ctx.Err() == nil {
			w.run(ctx)
		}
	})
	return w
}

// resume takes over what the version of the trigger before has seen.
func (w *watch) resume(before *watch) {
	w.edge.position, w.edge.unknown = before.edge.position, before.edge.unknown
	if w.t.sameCall(before.t) {
		w.edge.since, w.last, w.previous, w.failures = before.edge.since, before.last, before.previous, before.failures
		w.setProblem(before.setProblem(""))
	}
}

// sameCall reports whether two triggers read the same.
func (t *trigger) sameCall(other *trigger) bool {
	a, b := t.Values.Call, other.Values.Call
	if a.Uses.Value != b.Uses.Value || (a.With == nil) != (b.With == nil) {
		return false
	}
	return a.With == nil || value.Equal(a.With.Value, b.With.Value)
}

// restore reads the position from the ledger.
func (w *watch) restore() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.edge.position = w.s.positionOf(w.t.id)
	w.edge.unknown = w.edge.position == position{} && w.s.lost && (w.edge.When != nil || w.edge.Every > 0)
}

// positionOf returns the position of a trigger in the ledger. The caller holds the mutex.
func (s *server) positionOf(trigger string) (p position) {
	text := s.led.state.files[trigger][positionName]
	if text == "" || json.Unmarshal([]byte(text), &p) != nil {
		return position{}
	}
	return p
}

// run handles readings until the context is done.
func (w *watch) run(ctx context.Context) {
	var err error
	if w.values, err = w.s.svc.Values(w.t.v.Workflow, w.t.v.serving, w.t.index); err != nil {
		w.failed(ctx, err)
		return
	}
	w.edge.conditions = w.values
	readings := make(chan reading)
	var source sync.WaitGroup
	defer source.Wait()
	source.Go(func() {
		send := func(r reading) {
			select {
			case readings <- r:
			case <-ctx.Done():
			}
		}
		if w.t.Kind == host.TriggerPoll {
			w.poll(ctx, send)
		} else {
			w.stream(ctx, send)
		}
	})
	due := time.NewTimer(0)
	defer due.Stop()
	<-due.C
	for {
		wait := time.Duration(0)
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			wait = w.check(ctx)
		case r := <-readings:
			switch {
			case r.err != nil:
				w.failed(ctx, r.err)
			case r.settled:
				w.works(ctx)
				continue
			default:
				w.previous, w.last = w.last, r.value
				wait = w.check(ctx)
				w.show()
			}
		}
		due.Stop()
		if wait > 0 && w.t.Kind == host.TriggerStream { // a poll reads again
			due.Reset(wait)
		}
	}
}

// poll calls the action at the interval. A slow call delays the next one.
func (w *watch) poll(ctx context.Context, send func(reading)) {
	ticker := time.NewTicker(w.edge.Every)
	defer ticker.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, pollTimeout)
		v, err := w.values.Call(limited, func(context.Context, string) {})
		cancel()
		send(reading{value: v, err: err})
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// stream calls the action again and again.
func (w *watch) stream(ctx context.Context, send func(reading)) {
	for attempt := 1; ctx.Err() == nil; attempt++ {
		replaceable, again := context.WithCancelCause(ctx)
		limited, cancel := context.WithTimeout(replaceable, streamTime)
		generation := w.s.generations()[w.bundle]
		w.mu.Lock()
		w.again, w.generation = again, generation
		w.mu.Unlock()
		settled := time.AfterFunc(streamSettled, func() { send(reading{settled: true}) })
		began := time.Now()
		_, err := w.values.Call(limited, func(_ context.Context, text string) {
			v, err := value.Decode([]byte(text))
			if err != nil {
				err = fmt.Errorf("a value is not JSON: %w", err)
			}
			settled.Stop()
			attempt = 0
			send(reading{value: v, err: err})
		})
		settled.Stop()
		cancel()
		again(nil)
		if errors.Is(context.Cause(replaceable), errReplaced) {
			attempt = 0
			continue
		}
		if time.Since(began) > streamSettled {
			attempt = 0
		}
		send(reading{err: cmp.Or(err, errStreamEnded)})
		_ = backoff.Sleep(ctx, streamBackoff.Wait(attempt+1))
	}
}

var errStreamEnded = errors.New("the action has ended")

// check starts a run if the last value is to start one, and returns when to check it
// again; 0 = not.
func (w *watch) check(ctx context.Context) (wait time.Duration) {
	next, starts, wait, err := w.edge.step(ctx, w.last, w.previous, time.Now())
	if err != nil {
		w.failed(ctx, fmt.Errorf("condition: %w", err))
		return 0
	}
	w.works(ctx)
	if next.Failing = w.edge.position.Failing; starts {
		w.start(ctx, next, "", map[string]any{"status": statusValue, "result": w.last, "previous": w.previous})
	} else {
		w.remember(next)
	}
	return wait
}

// remember stores a position before the next value counts.
func (w *watch) remember(next position) {
	if next == w.edge.position {
		return
	}
	w.edge.position = next
	_ = w.s.record(next.entry(w.t.id)) // the ledger writes it again
}

// start starts a run. The ledger stores the position with it, so there is never one
// without the other.
func (w *watch) start(ctx context.Context, next position, workflow string, members map[string]any) {
	event := map[string]any{"result": nil, "previous": w.last, "error": nil, "failures": int64(w.failures)}
	for k, v := range members {
		event[k] = v
	}
	err := w.s.fireWhenRoom(ctx, w.t, w.t.event(event), request{workflow: workflow, also: []*entry{next.entry(w.t.id)}})
	switch {
	case errors.Is(err, errStopping):
	case err != nil: // the run was refused for good
		w.remember(next)
	default:
		w.edge.position = next
	}
}

// failed handles a failed reading.
func (w *watch) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	w.failures++
	w.edge.since = time.Time{}
	failure := tea.AsError(err)
	text := w.s.svc.Hide(failure.Error())
	if w.setProblem(text) != text {
		w.s.svc.Log.Warn(fmt.Sprintf("the trigger %q of %s: %s", w.t.Name, w.t.workflow, text), "workflow", w.t.workflow)
	}
	on := w.edge.OnFailure
	if next := w.edge.position; on != nil && w.failures >= on.After && !next.Failing {
		next.Failing = true
		w.start(ctx, next, w.alarm(), map[string]any{"status": statusFailed, "error": map[string]any{"type": string(failure.Type), "message": w.s.svc.Hide(failure.Message)}})
	}
}

// alarm returns the workflow of on_failure, "" for the trigger's workflow.
func (w *watch) alarm() string {
	if name := w.edge.OnFailure.Workflow; name != w.t.workflow {
		return name
	}
	return ""
}

// works ends a series of failed readings.
func (w *watch) works(ctx context.Context) {
	if w.setProblem("") != "" {
		w.s.svc.Log.Info(fmt.Sprintf("the trigger %q of %s reads values again", w.t.Name, w.t.workflow), "workflow", w.t.workflow)
	}
	if next := w.edge.position; next.Failing {
		next.Failing = false
		if on := w.edge.OnFailure; on != nil && on.Recovery {
			w.start(ctx, next, w.alarm(), map[string]any{"status": statusRecovered, "result": w.last, "previous": w.previous})
		} else {
			w.remember(next)
		}
	}
	w.failures = 0
}

// setProblem sets the problem and returns the one before.
func (w *watch) setProblem(text string) (before string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.problem = w.problem, text
	return before
}

// show records the last value for the page.
func (w *watch) show() {
	text, err := value.Encode(w.t.v.mask.Value(w.last))
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shown = string(text); len(text) > maxShownValue {
		w.shown = string(text[:value.WholeRunes(w.shown[:maxShownValue])]) + "..."
	}
}

// status returns the problem and the last value of a trigger.
func (c *watches) status(t *trigger) (problem, shown string) {
	c.mu.Lock()
	w := c.open[t.id]
	c.mu.Unlock()
	if w == nil {
		return "", ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problem, w.shown
}
