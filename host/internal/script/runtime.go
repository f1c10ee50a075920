package script

import (
	"context"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Options bound what scripts may do. Zero values give the defaults.
type Options struct {
	// Timeout is how long one run may take, calls of tea.action included;
	// 30 s by default. The context's deadline counts as well.
	Timeout time.Duration
	// MaxString is how many bytes one string may reach; 16 MiB by default.
	MaxString int
	// MemoryBytes is how far the heap may grow while a run lasts before the
	// run is stopped; 256 MiB by default. The heap is the process's: with
	// several runs at once, all that have lasted through the growth stop.
	MemoryBytes int64
	// MaxDepth is how deeply calls may nest; 1000 by default.
	MaxDepth int
}

const (
	defaultTimeout   = 30 * time.Second
	defaultMaxString = 16 << 20
	defaultMemory    = 256 << 20
	defaultMaxDepth  = 1000

	// maxArray is the largest list index kept in a table's array part. One
	// assignment to an index fills the array up to it, so this bounds what a
	// single instruction can allocate (16 MiB), and how long it takes.
	maxArray = 1 << 20
	// maxIdle is how many machines wait for their next run.
	maxIdle = 16
)

// limitArrays guards the one process-wide setting that gopher-lua has no
// option for: it must be set before the first state runs.
var limitArrays = sync.OnceFunc(func() { lua.MaxArrayIndex = maxArray })

// Runtime is a pool of Lua states. It is safe for concurrent use.
type Runtime struct {
	options  Options
	programs programs
	watch    watcher

	mu       sync.Mutex
	idle     []*machine
	compiled map[programKey]*program
}

// New makes a runtime. States are made when they are first needed.
func New(o Options) *Runtime {
	limitArrays()
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxString <= 0 {
		o.MaxString = defaultMaxString
	}
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = defaultMemory
	}
	if o.MaxDepth <= 0 {
		o.MaxDepth = defaultMaxDepth
	}
	return &Runtime{options: o, programs: compilePrograms(), watch: watcher{limit: uint64(o.MemoryBytes)}, compiled: map[programKey]*program{}}
}

// Close drops the idle states. Chunks may still run afterwards; they make new
// ones.
func (rt *Runtime) Close() {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.idle = nil
}

func (rt *Runtime) take() *machine {
	rt.mu.Lock()
	if n := len(rt.idle); n > 0 {
		m := rt.idle[n-1]
		rt.idle = rt.idle[:n-1]
		rt.mu.Unlock()
		return m
	}
	rt.mu.Unlock()
	return newMachine(rt)
}

func (rt *Runtime) put(m *machine) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if len(rt.idle) < maxIdle {
		rt.idle = append(rt.idle, m)
	}
}

// execute gives body a run on a machine of its own. name is the source that
// errors are about.
func (rt *Runtime) execute(ctx context.Context, env Env, name string, body func(*run) (any, error)) (result any, err error) {
	if err := ctx.Err(); err != nil {
		return nil, stoppedError(name, err)
	}
	m := rt.take()
	r := newRun(ctx, rt, m, env, name)
	defer func() {
		p := recover()
		healthy := p == nil && !r.stopped()
		if p != nil {
			result, err = nil, r.failure(panicObject(p))
		}
		r.end()
		if healthy {
			rt.put(m)
		}
	}()
	return body(r)
}
