package script

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// ModuleAction is one action of a module, with its metadata.
type ModuleAction struct {
	Name        string
	Description string
	Params      map[string]any // JSON Schema of the parameters, or nil
	Result      map[string]any // JSON Schema of the result, or nil
}

// Module is a Lua file that returns a table of functions, with register_actions
// if it has actions. After [Module.FindActions] it is immutable and safe for
// concurrent use. Every run recreates its functions, so that they cannot keep
// state.
type Module struct {
	*Chunk
	actions []ModuleAction
}

// CompileModule compiles a module without running it, so that modules that it
// requires can be compiled later. The error is a [*SyntaxError].
func (rt *Runtime) CompileModule(src Source) (*Module, error) {
	chunk, err := rt.Compile(src)
	if err != nil {
		return nil, err
	}
	return &Module{Chunk: chunk}, nil
}

// FindActions runs a module once to find its actions. The module can require
// the given modules by name. The error is a [*RunError].
//
// A module returns a table. If it has a function register_actions, that function
// is called with a table, the registry, and each function in the registry is an
// action. A field __tea_actions__ of the module's table, or a global of that
// name, describes them: name -> {description, params, result}, or the module with
// its actions.
func (m *Module) FindActions(ctx context.Context, modules map[string]*Module) error {
	_, err := m.runtime.execute(ctx, Env{Modules: modules}, m.name, func(r *run) any {
		m.actions = r.moduleInstance(m).actions()
		return nil
	})
	return err
}

// Actions returns the module's actions, sorted by name.
func (m *Module) Actions() []ModuleAction { return m.actions }

// Call runs an action: its function with the state and params. The error is
// a [*RunError].
func (m *Module) Call(ctx context.Context, action string, env Env, params map[string]any) (any, error) {
	return m.runtime.execute(ctx, env, m.name, func(r *run) any {
		inst := r.moduleInstance(m)
		fn, ok := inst.registry().RawGetString(action).(*lua.LFunction)
		if !ok {
			panic(inst.fail("no action %q is registered", action))
		}
		args, err := r.imported(params)
		if err != nil {
			panic(inst.fail("params: %v", err))
		}
		return r.export(r.call(fn, r.stateTable(), args), "result")
	})
}

// actions joins the registered names of a module with its metadata.
func (i *instance) actions() []ModuleAction {
	names := i.actionNames()
	about := i.described(names)
	for name := range about {
		if !slices.Contains(names, name) {
			panic(i.fail("__tea_actions__ describes %q, which register_actions does not register%s", name, diag.Ending(name, names)))
		}
	}
	actions := make([]ModuleAction, len(names))
	for n, name := range names {
		entry, _ := about[name].(map[string]any)
		description, _ := entry["description"].(string)
		params, _ := entry["params"].(map[string]any)
		result, _ := entry["result"].(map[string]any)
		actions[n] = ModuleAction{Name: name, Description: description, Params: params, Result: result}
	}
	return actions
}

// described returns the descriptions of the actions by name. __tea_actions__ has an
// entry for each action, or describes the module: version, description, and actions, a
// list of names or of descriptions with a name.
func (i *instance) described(names []string) map[string]any {
	about := i.metadata()
	list, ok := about["actions"]
	if !ok || slices.Contains(names, "actions") {
		return about
	}
	described := map[string]any{}
	switch list := list.(type) {
	case []any:
		for _, entry := range list {
			name, _ := entry.(string)
			if object, ok := entry.(map[string]any); ok {
				name, _ = object["name"].(string)
			}
			if name == "" {
				panic(i.fail("__tea_actions__.actions must have the names of actions, or descriptions with a name"))
			}
			described[name] = entry
		}
	case map[string]any:
		for name, entry := range list {
			if text, ok := entry.(string); ok {
				entry = map[string]any{"description": text}
			}
			described[name] = entry
		}
	default:
		panic(i.fail("__tea_actions__.actions must be a list of names, or map names to descriptions"))
	}
	return described
}

// instance is a module in one run.
type instance struct {
	r       *run
	module  *Module
	globals *lua.LTable
	table   *lua.LTable
}

func (i *instance) fail(format string, args ...any) failed {
	return failed{&RunError{Kind: ScriptError, File: i.module.name, Message: fmt.Sprintf(format, args...)}}
}

// moduleInstance runs a module's code, from outside Lua. It and the methods of
// the instance panic on failure.
func (r *run) moduleInstance(m *Module) *instance {
	i := &instance{r: r, module: m, globals: r.moduleGlobals()}
	r.modules, r.loading = map[*Module]*lua.LTable{m: nil}, []*Module{m}
	defer func() { r.loading = nil }()
	v := r.call(r.instantiate(must(m.code()), i.globals), r.m.hidden...)
	var ok bool
	if i.table, ok = v.(*lua.LTable); !ok {
		panic(i.fail("a module must return a table, not a %s", v.Type()))
	}
	r.modules[m] = i.table
	return i
}

// moduleGlobals is the environment of a module.
func (r *run) moduleGlobals() *lua.LTable {
	t := r.newGlobals()
	t.RawSetString("_G", t)
	return t
}

// registry returns the table that register_actions has filled.
func (i *instance) registry() *lua.LTable {
	registry := i.r.m.root.CreateTable(0, 8)
	register := i.table.RawGetString("register_actions")
	if register == lua.LNil {
		return registry
	}
	fn, ok := register.(*lua.LFunction)
	if !ok {
		panic(i.fail("register_actions must be a function, not a %s", register.Type()))
	}
	i.r.call(fn, registry)
	return registry
}

func (i *instance) actionNames() []string {
	registry := i.registry()
	var names []string
	for key, v := registry.Next(lua.LNil); key != lua.LNil; key, v = registry.Next(key) {
		name, ok := key.(lua.LString)
		if !ok || v.Type() != lua.LTFunction {
			panic(i.fail("registry[%s] must be a function under a name", keyText(key)))
		}
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

// metadata returns __tea_actions__ in the value model; nil if there is none.
func (i *instance) metadata() map[string]any {
	const field = "__tea_actions__"
	v := i.table.RawGetString(field)
	if v == lua.LNil {
		v = i.globals.RawGetString(field)
	}
	if v == lua.LNil {
		return nil
	}
	about, ok := i.r.export(v, field).(map[string]any)
	if !ok {
		panic(i.fail("%s must map action names to their descriptions", field))
	}
	return about
}

// notImported describes a name that require does not find. If a module's file has
// that name, the module is imported under a different name, its namespace.
func (e *Env) notImported(name string) string {
	names := slices.Sorted(maps.Keys(e.Modules))
	for _, namespace := range names {
		if strings.TrimSuffix(filepath.Base(e.Modules[namespace].name), ".lua") == name {
			return fmt.Sprintf("module %q is imported with namespace %q; use require(%q)", name, namespace, namespace)
		}
	}
	return fmt.Sprintf("module %q is not imported%s", name, diag.Ending(name, names))
}

// baseRequire returns an imported module's table: require(name).
func baseRequire(L *lua.LState) int {
	r := runOf(L)
	name := L.CheckString(1)
	m, ok := r.env.Modules[name]
	if !ok {
		L.RaiseError("%s", r.env.notImported(name))
	}
	t, loading := r.modules[m]
	if t == nil {
		if loading {
			L.RaiseError("modules require each other: %s", r.cycle(m))
		}
		t = r.loadModule(L, name, m)
	}
	return push(L, t)
}

// cycle returns the files of a cycle through a module that is being loaded.
func (r *run) cycle(m *Module) string {
	var names []string
	for _, other := range r.loading[slices.Index(r.loading, m):] {
		names = append(names, other.name)
	}
	return strings.Join(append(names, m.name), " -> ")
}

// loadModule runs a module's code, from inside Lua.
func (r *run) loadModule(L *lua.LState, name string, m *Module) *lua.LTable {
	if r.modules == nil {
		r.modules = map[*Module]*lua.LTable{}
	}
	r.modules[m] = nil
	r.loading = append(r.loading, m)
	defer func() {
		r.loading = r.loading[:len(r.loading)-1]
		if r.modules[m] == nil { // it failed, and can be retried
			delete(r.modules, m)
		}
	}()
	proto, err := m.code()
	if err != nil {
		L.RaiseError("%v", err)
	}
	t, ok := r.callback(L, r.instantiate(proto, r.moduleGlobals()), r.m.hidden...).(*lua.LTable)
	if !ok {
		L.RaiseError("module %q must return a table", name)
	}
	r.modules[m] = t
	return t
}
