package script

import (
	"context"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Options are the limits of scripts. Zero values mean the defaults.
type Options struct {
	// Timeout bounds one run, including calls of tea.action; default 30 s. The
	// context's deadline also applies.
	Timeout time.Duration
	// MaxString bounds the bytes of one string; default 16 MiB.
	MaxString int
	// MemoryBytes bounds the growth of the heap during a run; default 256 MiB.
	// The heap belongs to the process: if it grows during several concurrent
	// runs, all of them are stopped.
	MemoryBytes int64
	// MaxDepth bounds the nesting of calls; default 1000.
	MaxDepth int
}

const (
	defaultTimeout   = 30 * time.Second
	defaultMaxString = 16 << 20
	defaultMemory    = 256 << 20
	defaultMaxDepth  = 1000

	// maxArray is the largest list index in a table's array part. One assignment
	// fills the array up to its index, so this bounds the memory (16 MiB) and
	// time of a single instruction.
	maxArray = 1 << 20
)

// limitArrays guards a process-wide setting of gopher-lua, which must be set
// before the first state runs.
var limitArrays = sync.OnceFunc(func() { lua.MaxArrayIndex = maxArray })

// Runtime compiles Lua code and has a pool of Lua states to run it. It is safe
// for concurrent use.
type Runtime struct {
	options Options
	watch   watcher
	idle    sync.Pool // of machines

	mu       sync.Mutex
	compiled map[programKey]*program
}

// New returns a runtime. It creates Lua states on demand, and the garbage collector
// removes those that are no longer used.
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
	return &Runtime{options: o, watch: watcher{limit: uint64(o.MemoryBytes)}, compiled: map[programKey]*program{}}
}

func (rt *Runtime) take() *machine {
	if m, ok := rt.idle.Get().(*machine); ok {
		return m
	}
	return newMachine(rt)
}

// execute calls body with a run on a machine of the pool. name is the source
// file in errors. The body can panic with an error as a [failed].
func (rt *Runtime) execute(ctx context.Context, env Env, name string, body func(*run) any) (result any, err error) {
	if err := ctx.Err(); err != nil {
		return nil, stoppedError(name, err)
	}
	m := rt.take()
	r := newRun(ctx, rt, m, env, name)
	ended := false // stays false if the goroutine exits inside an action
	defer func() {
		p := recover()
		f, ok := p.(failed)
		healthy := (ended || ok) && !r.stopped()
		if err = f.error; p != nil && !ok {
			err = r.failure(panicObject(p))
		}
		r.end()
		if healthy {
			rt.idle.Put(m)
		}
	}()
	result = body(r)
	ended = true
	return result, nil
}
