package script

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
)

const (
	// coroutineDepth bounds the nesting of calls in one coroutine.
	coroutineDepth = 200
	// maxRegisters bounds the values on one thread's stack.
	maxRegisters = 256 << 10
)

// machine is a Lua state with the sandbox's libraries. One run uses it at a
// time; all runs share the tables of the libraries, through read-only proxies.
type machine struct {
	root        *lua.LState   // has the state that all threads share; runs nothing itself
	idleThreads []*lua.LState // threads whose function has returned
	depth       int
	current     atomic.Pointer[run]
	timer       *time.Timer // calls checkDeadline

	base       *lua.LTable                 // fallback of environments
	envMeta    *lua.LTable                 // metatable of environments
	lazyMeta   *lua.LTable                 // metatable of lazy tables
	listMeta   *lua.LTable                 // marks tables of lists
	objectMeta *lua.LTable                 // marks tables of objects
	errorMeta  *lua.LTable                 // metatable of action errors
	proxies    map[*lua.LTable]*lua.LTable // read-only table -> its target
	patterns   map[patternKey]*pattern
	path       []segment     // reused by exporters
	seen       []*lua.LTable // reused by exporters
	kept       []string      // reused by the runs
	null       *lua.LUserData
	hidden     []lua.LValue // the arguments of a chunk, see rewrite
	next       *lua.LFunction
	ipairsStep *lua.LFunction
	get        *lua.LFunction
	yield      *lua.LFunction
}

func newMachine(rt *Runtime) *machine {
	root := lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: 8, RegistrySize: 256, RegistryMaxSize: maxRegisters, RegistryGrowStep: 1024, MinimizeStackMemory: true})
	root.G.MainThread, root.G.CurrentThread = root, root
	m := &machine{root: root, depth: rt.options.MaxDepth, proxies: map[*lua.LTable]*lua.LTable{}, patterns: map[patternKey]*pattern{}, path: make([]segment, 0, 16), seen: make([]*lua.LTable, 0, 16)}
	m.timer = time.AfterFunc(time.Hour, m.checkDeadline)
	m.timer.Stop()
	m.openLibraries()
	return m
}

// checkDeadline is called when a run has lasted for a while, and at its deadline. A
// late call has no effect on the next run.
func (m *machine) checkDeadline() {
	r := m.current.Load()
	if r == nil {
		return
	}
	if left := time.Until(r.deadline); left > 0 {
		r.watch.add(r)
		m.timer.Reset(left)
		return
	}
	r.halt(pastDeadline)
}

// thread returns a new Lua thread for depth nested calls.
func (m *machine) thread(depth int) *lua.LState {
	m.root.Options.CallStackSize = depth
	th, _ := m.root.NewThread()
	return th
}

// borrow returns a thread for a chunk or a protected call, with the context ctx.
func (m *machine) borrow(ctx context.Context) *lua.LState {
	var th *lua.LState
	if n := len(m.idleThreads); n > 0 {
		th, m.idleThreads = m.idleThreads[n-1], m.idleThreads[:n-1]
	} else {
		th = m.thread(m.depth)
	}
	th.SetContext(ctx)
	return th
}

// release returns a thread whose function has returned to the pool. gopher-lua
// considers it dead, but its stacks are empty and it can be restarted.
func (m *machine) release(th *lua.LState) {
	if len(m.idleThreads) < 4 {
		th.Dead = false
		m.idleThreads = append(m.idleThreads, th)
	}
}

// openLibraries fills the base table.
func (m *machine) openLibraries() {
	m.base = m.root.CreateTable(0, 48)
	m.lazyMeta = m.meta(map[string]lua.LGFunction{"__index": lazyIndex, "__newindex": lazyNewIndex})
	m.listMeta, m.objectMeta = m.library(nil), m.library(nil)
	m.errorMeta = m.meta(map[string]lua.LGFunction{"__tostring": errorToString, "__concat": errorConcat})
	m.envMeta = m.meta(nil)
	m.envMeta.RawSetString("__index", m.base)
	m.null = &lua.LUserData{Metatable: m.meta(map[string]lua.LGFunction{"__tostring": nullToString})}
	m.hidden = []lua.LValue{m.root.NewFunction(concatenate), m.root.NewFunction(loopBound)}
	m.next = m.root.NewFunction(baseNext)
	m.get = m.root.NewFunction(objectGet)
	m.ipairsStep = m.root.NewFunction(ipairsStep)
	m.yield = m.root.NewFunction(coroutineYield)

	for name, fn := range baseFunctions() {
		m.base.RawSetString(name, m.root.NewFunction(fn))
	}
	m.base.RawSetString("_VERSION", lua.LString(lua.LuaVersion))
	text := m.library(stringFunctions())
	m.base.RawSetString("string", m.readOnly(text))
	m.base.RawSetString("table", m.readOnly(m.library(tableFunctions())))
	m.base.RawSetString("math", m.readOnly(m.mathLibrary()))
	m.base.RawSetString("coroutine", m.readOnly(m.library(coroutineFunctions())))
	m.base.RawSetString("tea", m.readOnly(m.teaLibrary()))

	stringMeta := m.meta(arithmetic())
	stringMeta.RawSetString("__index", text)
	m.root.SetMetatable(lua.LString(""), stringMeta)

	// Names that are not in a library, such as state and variables.
	fallback := m.meta(map[string]lua.LGFunction{"__index": globalIndex})
	m.base.Metatable = fallback
}

// library returns a table of functions, in the order of their names.
func (m *machine) library(functions map[string]lua.LGFunction) *lua.LTable {
	t := m.root.CreateTable(0, len(functions))
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		t.RawSetString(name, m.root.NewFunction(functions[name]))
	}
	return t
}

// meta returns a metatable that scripts can neither read nor replace.
func (m *machine) meta(functions map[string]lua.LGFunction) *lua.LTable {
	t := m.library(functions)
	t.RawSetString("__metatable", lua.LFalse)
	return t
}

// readOnly returns a read-only proxy of t.
func (m *machine) readOnly(t *lua.LTable) *lua.LTable {
	mt := m.meta(map[string]lua.LGFunction{"__newindex": refuseWrite})
	mt.RawSetString("__index", t)
	proxy := m.root.CreateTable(0, 0)
	proxy.Metatable = mt
	m.proxies[proxy] = t
	return proxy
}

func refuseWrite(L *lua.LState) int {
	L.RaiseError("the libraries cannot be changed")
	return 0
}
