package script

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// Env is the environment of a run. The maps are in the value model, shared and
// never changed; they are converted only as far as the script reads them.
type Env struct {
	// State is `state`. The script gets a copy.
	State map[string]any
	// Missing returns the value of state.KEY if State does not have the key;
	// nil = no value. Iteration does not use it.
	Missing func(key string) (any, bool)
	// BareNames looks up otherwise undefined global names in State, as in
	// conditions.
	BareNames bool
	// Globals has further global names, such as variables and item; nil = none.
	Globals Globals
	// Steps limits the number of instructions instead of the time, so that a
	// replay stops at the same place; 0 limits the time.
	Steps int
	// Action is tea.action; if it is nil, tea.action fails. It must return soon
	// after ctx is done. Its errors should be *tea.Error.
	Action func(ctx context.Context, name string, params any) (any, error)
	// Log is tea.log and print; nil drops them.
	Log func(level slog.Level, message string, fields map[string]any)
	// Modules are the modules of require(name).
	Modules map[string]*Module
	// Seed is the seed of math.random, so that equal runs have equal numbers.
	Seed uint64
}

// Globals returns the values of global names. A value can also be [Objects]. A run asks
// once for each name that it reads.
type Globals interface {
	Lookup(name string) (any, bool)
}

// Values are [Globals] in a map.
type Values map[string]any

// Lookup returns the value of a name.
func (v Values) Lookup(name string) (any, bool) {
	value, ok := v[name]
	return value, ok
}

// globalIndex resolves the names that neither the script nor a library defines.
func globalIndex(L *lua.LState) int {
	r := runOf(L)
	key, ok := L.Get(2).(lua.LString)
	if !ok {
		return push(L, lua.LNil)
	}
	return push(L, r.global(L, string(key)))
}

func (r *run) global(L *lua.LState, name string) lua.LValue {
	switch name {
	case "_G":
		return r.globals
	case "state":
		return r.keepGlobal(name, r.stateTable())
	}
	if r.env.Globals != nil {
		if v, ok := r.env.Globals.Lookup(name); ok {
			return r.keepGlobal(name, r.mustImport(L, v, name))
		}
	}
	if r.env.BareNames {
		if v := L.GetField(r.stateTable(), name); v != lua.LNil {
			return v
		}
	}
	r.missing = missingName{name: name, line: currentLine(L)}
	return lua.LNil
}

// keepGlobal defines a name for the rest of the run, in the base table, which
// scripts cannot access: growing the run's environment costs more than the rest
// of a small run.
func (r *run) keepGlobal(name string, v lua.LValue) lua.LValue {
	r.m.base.RawSetString(name, v)
	r.kept = append(r.kept, name)
	return v
}

// stateTable is `state`.
func (r *run) stateTable() *lua.LTable {
	if r.state == nil {
		r.stateKeys = lazyObject{object: r.env.State, missing: r.env.Missing, place: "state"}
		r.state = r.m.root.CreateTable(0, 0)
		r.state.Metatable = r.m.lazyMeta
	}
	return r.state
}

// writable raises an error for tables that scripts cannot change.
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

// omitted are the parts of Lua that the sandbox omits.
var omitted = []string{
	"collectgarbage", "channel", "debug", "dofile", "getfenv", "io", "load", "loadfile", "loadstring",
	"module", "newproxy", "os", "package", "setfenv",
}

func explainMissing(name string) string {
	if slices.Contains(omitted, name) {
		return fmt.Sprintf("%s is not available in the sandbox", name)
	}
	return fmt.Sprintf("the global name %q is not defined", name)
}
