package script

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// watchAfter is the time after which the memory of a run is watched.
const watchAfter = 5 * time.Millisecond

// maxCounting bounds the time of a run whose instructions are counted, in case they
// are slow.
const maxCounting = time.Hour

// run is one use of a machine. It is the context of the machine's threads,
// through which library functions find it.
type run struct {
	parent   context.Context
	done     <-chan struct{} // the parent's
	begin    time.Time
	deadline time.Time
	stop     atomic.Int32 // a stopReason
	ended    atomic.Bool
	watched  atomic.Bool // since before the watcher looked at ended
	waiting  atomic.Bool // for an action
	watch    *watcher

	m       *machine
	env     Env
	name    string
	limit   int // Options.MaxString
	globals *lua.LTable
	state   *lua.LTable
	// stateKeys is the object of state.
	stateKeys lazyObject

	kept     []string                    // names that keepGlobal added to the base table
	lazies   map[*lua.LTable]*lazyObject // besides state
	nulls    map[*lua.LTable]map[string]any
	digits   digits
	failures map[*lua.LTable]error
	modules  map[*Module]*lua.LTable // nil while loading
	loading  []*Module               // modules whose code is running, innermost last
	random   *rand.Rand

	protected  int           // active calls of protect
	coroutines []*lua.LState // active ones, innermost last
	yielded    *lua.LState   // the coroutine that yielded last
	callbacks  int           // calls from a library function back into Lua
	boundaries []int         // callbacks at the start of each coroutine
	missing    missingName
	counted    int // instructions, with Env.Steps
	steps      int // counts library functions' work since the last check of the deadline
	yielder

	mu       sync.Mutex
	cancel   context.CancelFunc // of the called action
	decision chan struct{}      // closed when a suspended run continues or ends
}

// stopReason is the reason to stop a run, other than its parent context.
type stopReason = int32

const (
	notStopped stopReason = iota
	suspended
	counting // notStopped, and each instruction counts
	pastDeadline
	outOfMemory
)

func newRun(parent context.Context, rt *Runtime, m *machine, env Env, name string) *run {
	now := time.Now()
	r := &run{
		parent: parent, done: parent.Done(), begin: now, deadline: now.Add(rt.options.Timeout), watch: &rt.watch,
		m: m, env: env, name: name, limit: rt.options.MaxString,
	}
	r.globals, r.kept = r.newGlobals(), m.kept[:0]
	m.root.G.CurrentThread = m.root
	m.current.Store(r)
	if env.Steps > 0 {
		// Memory is limited as for other runs, not deterministically: code that
		// reaches the limit has to be corrected anyway.
		r.stop.Store(counting)
		r.deadline = now.Add(maxCounting)
	}
	m.timer.Reset(min(watchAfter, rt.options.Timeout))
	return r
}

// end removes the run's state from the machine.
func (r *run) end() {
	r.ended.Store(true)
	r.m.timer.Stop()
	r.m.current.Store(nil)
	r.watch.remove(r)
	for _, name := range r.kept {
		r.m.base.RawSetString(name, lua.LNil)
	}
	clear(r.kept)
	r.m.kept, r.kept = r.kept, nil
	clear(r.m.seen[:cap(r.m.seen)])
	if time.Since(r.begin) > watchAfter {
		r.m.idleThreads = nil // their stacks may have grown, and never shrink
	}
}

// closed is a channel that is ready.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done is called by every Lua instruction. It returns the parent's channel
// until the run is stopped.
func (r *run) Done() <-chan struct{} {
	r.yield()
	switch r.stop.Load() {
	case notStopped:
		return r.done
	case suspended:
		r.await()
		return r.Done()
	case counting:
		if r.counted++; r.counted <= r.env.Steps {
			return r.done
		}
		r.stop.Store(pastDeadline)
	}
	return closed
}

// suspend makes the run wait, at its next instruction, for decide or halt.
func (r *run) suspend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decision = make(chan struct{})
	if !r.stop.CompareAndSwap(notStopped, suspended) {
		r.stop.CompareAndSwap(counting, suspended)
	}
}

// await waits for the end of a suspension.
func (r *run) await() {
	r.mu.Lock()
	decision := r.decision
	r.mu.Unlock()
	<-decision
}

// decide ends a suspension: the run continues, or stops.
func (r *run) decide(sentence stopReason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sentence == notStopped && r.env.Steps > 0 {
		sentence = counting
	}
	if r.stop.CompareAndSwap(suspended, sentence) {
		close(r.decision)
	}
}

// Err returns the reason for which Done is closed.
func (r *run) Err() error {
	switch r.stop.Load() {
	case pastDeadline:
		return context.DeadlineExceeded
	case outOfMemory:
		return context.Canceled
	}
	return r.parent.Err()
}

// Deadline returns the deadline of the run or of the parent, whichever is
// earlier.
func (r *run) Deadline() (time.Time, bool) {
	if d, ok := r.parent.Deadline(); ok && d.Before(r.deadline) {
		return d, true
	}
	return r.deadline, true
}

// Value returns the parent's value.
func (r *run) Value(key any) any { return r.parent.Value(key) }

// halt stops the run from another goroutine.
func (r *run) halt(why stopReason) {
	r.decide(why)
	if !r.stop.CompareAndSwap(notStopped, why) {
		r.stop.CompareAndSwap(counting, why)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil {
		r.cancel()
	}
}

// actionContext returns a context for one action. The run is not suitable, because
// the action can retain the context after the run.
func (r *run) actionContext() (context.Context, context.CancelFunc) {
	if r.env.Steps > 0 {
		return r.parent, func() {}
	}
	ctx, cancel := context.WithDeadline(r.parent, r.deadline)
	r.mu.Lock()
	r.cancel = cancel
	r.mu.Unlock()
	if r.stopped() {
		cancel()
	}
	return ctx, cancel
}

// largeWork is the number of bytes of text from which detached uses a goroutine.
const largeWork = 256 << 10

// detached runs work that cannot be interrupted but terminates. If the work is
// large and the run is stopped meanwhile, detached returns and the work continues
// in the background.
func detached[T any](r *run, L *lua.LState, size int, work func() (T, error)) (T, error) {
	if size < largeWork {
		return work()
	}
	type outcome struct {
		v   T
		err error
	}
	ctx, cancel := r.actionContext()
	defer cancel()
	ready := make(chan outcome, 1)
	go func() {
		v, err := work()
		ready <- outcome{v, err}
	}()
	select {
	case o := <-ready:
		return o.v, o.err
	case <-ctx.Done():
		r.expire()
		r.check(L)
		var zero T
		return zero, ctx.Err()
	}
}

// expire stops the run if its deadline has passed. A timer of the standard library
// can fire slightly before the run's timer.
func (r *run) expire() {
	if r.env.Steps == 0 && !time.Now().Before(r.deadline) {
		r.halt(pastDeadline)
	}
}

// runOf returns the run of a library function's thread.
func runOf(L *lua.LState) *run { return L.Context().(*run) }

// stopped reports whether the run must end.
func (r *run) stopped() bool {
	select {
	case <-r.Done():
		return true
	default:
		return false
	}
}

// check raises an error if the run must end. Library functions call it in
// loops.
func (r *run) check(L *lua.LState) {
	if r.stopped() {
		L.RaiseError("the script was stopped")
	}
}

// step is check for loops with small steps.
func (r *run) step(L *lua.LState) {
	r.yield()
	if r.steps++; r.steps >= stepsPerCheck {
		r.steps = 0
		r.check(L)
	}
}

func (r *run) newGlobals() *lua.LTable {
	t := r.m.root.CreateTable(0, 0)
	t.Metatable = r.m.envMeta
	return t
}

// instantiate returns a function of proto with its globals in env.
func (r *run) instantiate(proto *lua.FunctionProto, env *lua.LTable) *lua.LFunction {
	fn := r.m.root.NewFunctionFromProto(proto)
	fn.Env = env
	return fn
}
