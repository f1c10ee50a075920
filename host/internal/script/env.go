package script

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// Env is what a run sees. The maps are in the value model, shared and never
// changed; they are converted only as far as the script looks.
type Env struct {
	// State is `state`: a copy to the script, whatever it assigns.
	State map[string]any
	// Missing finds what state.KEY gives where State has no such key, to read
	// only: it is no part of the table when that is walked; nil = nothing.
	Missing func(key string) (any, bool)
	// BareNames looks a global name that is not known otherwise up in State,
	// as conditions do.
	BareNames bool
	// Globals are further global names: variables, parallel_results, item ...
	Globals map[string]any
	// Action is tea.action; where it is nil, a call says that there is none.
	// It must return soon after ctx is done. Its failures are best *tea.Error.
	Action func(ctx context.Context, name string, params any) (any, error)
	// Log is tea.log and print; nil drops them.
	Log func(level slog.Level, message string, fields map[string]any)
	// Modules are what require(name) finds.
	Modules map[string]*Module
	// Seed starts math.random, so that equal runs draw equal numbers.
	Seed uint64
}

// globalIndex finds the names that neither the script nor a library defines.
func globalIndex(L *lua.LState) int {
	r := runOf(L)
	key, ok := L.Get(2).(lua.LString)
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(r.global(L, string(key)))
	return 1
}

func (r *run) global(L *lua.LState, name string) lua.LValue {
	switch name {
	case "_G":
		return r.globals
	case "state":
		return r.keepGlobal(name, r.stateTable())
	}
	if v, ok := r.env.Globals[name]; ok {
		return r.keepGlobal(name, r.mustImport(L, v, name))
	}
	if r.env.BareNames {
		if v := L.GetField(r.stateTable(), name); v != lua.LNil {
			return v
		}
	}
	r.missing = missingName{name: name, line: currentLine(L)}
	return lua.LNil
}

// keepGlobal makes a name known for the rest of the run. It goes into the base
// table, which scripts cannot reach: making room in the run's own environment
// costs more than the rest of a small run.
func (r *run) keepGlobal(name string, v lua.LValue) lua.LValue {
	r.m.base.RawSetString(name, v)
	r.kept = append(r.kept, name)
	return v
}

// stateTable is `state`, whose keys are converted when they are first read.
func (r *run) stateTable() *lua.LTable {
	if r.state == nil {
		r.state = r.m.root.CreateTable(0, 0)
		r.state.Metatable = r.m.stateMeta
	}
	return r.state
}

// stateIndex converts a key of the state at its first use.
func stateIndex(L *lua.LState) int {
	r := runOf(L)
	key, ok := L.Get(2).(lua.LString)
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(r.loadState(L, string(key)))
	return 1
}

func (r *run) loadState(L *lua.LState, key string) lua.LValue {
	v, ok := r.env.State[key]
	if !ok && r.env.Missing != nil {
		v, ok = r.env.Missing(key)
		if ok {
			return r.mustImport(L, v, "state."+key)
		}
	}
	if !ok || v == nil {
		return lua.LNil
	}
	if _, ok := r.loaded[key]; ok {
		return lua.LNil
	}
	lv := r.mustImport(L, v, "state."+key)
	if isPlain(v) {
		return lv
	}
	return r.storeState(key, lv)
}

// isPlain tells whether converting v again costs less than keeping it.
func isPlain(v any) bool {
	switch v := v.(type) {
	case bool, string, float64:
		return true
	case int64:
		return v > -maxExact && v < maxExact
	}
	return false
}

// storeState makes state decide about a key from now on.
func (r *run) storeState(key string, v lua.LValue) lua.LValue {
	r.markLoaded(key)
	r.state.RawSetString(key, v)
	return v
}

func (r *run) markLoaded(key string) {
	if r.loaded == nil {
		r.loaded = map[string]struct{}{}
	}
	r.loaded[key] = struct{}{}
}

// stateNewIndex assigns a key that has not been converted: it never will be.
func stateNewIndex(L *lua.LState) int {
	r := runOf(L)
	key, value := L.Get(2), L.Get(3)
	if name, ok := key.(lua.LString); ok && r.env.State[string(name)] != nil {
		r.markLoaded(string(name))
	}
	L.RawSet(r.state, key, value)
	return 0
}

// whole gives a table that can be walked: the table behind a library's proxy,
// and `state` with all its keys.
func (r *run) whole(L *lua.LState, t *lua.LTable) *lua.LTable {
	if t.Metatable == lua.LValue(r.m.stateMeta) {
		for _, key := range slices.Sorted(maps.Keys(r.env.State)) {
			if v := r.loadState(L, key); v != lua.LNil {
				r.storeState(key, v)
			}
		}
		t.Metatable = r.m.objectMeta
		r.noteNulls(t, r.env.State)
		return t
	}
	if shown, ok := r.m.proxies[t]; ok {
		return shown
	}
	return t
}

// writable refuses tables that scripts cannot change.
func (r *run) writable(L *lua.LState, t *lua.LTable) *lua.LTable {
	if _, ok := r.m.proxies[t]; ok {
		L.RaiseError("the libraries cannot be changed")
	}
	return t
}

func currentLine(L *lua.LState) int {
	for level := range 4 {
		debug, ok := L.GetStack(level)
		if !ok {
			return 0
		}
		if _, err := L.GetInfo("l", debug, lua.LNil); err == nil && debug.CurrentLine > 0 {
			return debug.CurrentLine
		}
	}
	return 0
}

// withheld are parts of Lua that the sandbox leaves out.
var withheld = []string{
	"collectgarbage", "channel", "debug", "dofile", "getfenv", "io", "load", "loadfile", "loadstring",
	"module", "newproxy", "os", "package", "setfenv",
}

func explainMissing(name string) string {
	if slices.Contains(withheld, name) {
		return fmt.Sprintf("%s is not available in the sandbox", name)
	}
	return fmt.Sprintf("the global name %q is not defined", name)
}
