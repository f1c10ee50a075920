package script

import (
	"fmt"
	"log/slog"

	lua "github.com/yuin/gopher-lua"

	tea "github.com/the-edge-agent/tea/sdk"
)

// teaLibrary is `tea`.
func (m *machine) teaLibrary() *lua.LTable {
	t := m.library(map[string]lua.LGFunction{"action": teaAction, "log": teaLog})
	t.RawSetString("null", m.null)
	t.RawSetString("json", m.readOnly(m.library(map[string]lua.LGFunction{
		"decode": jsonDecode,
		"encode": jsonEncode,
		"object": jsonObject,
	})))
	return t
}

func nullToString(L *lua.LState) int { return push(L, lua.LString("null")) }

// teaAction calls an action: tea.action(name, params).
func teaAction(L *lua.LState) int {
	r := runOf(L)
	name := L.CheckString(1)
	if r.env.Action == nil {
		L.RaiseError("tea.action is not available here")
	}
	params := map[string]any{}
	if L.Get(2) != lua.LNil {
		params = r.exportObject(L, L.CheckTable(2), "params")
	}
	result, err := r.callAction(name, params)
	r.check(L)
	if err != nil {
		L.Error(r.errorTable(err), 0)
	}
	return push(L, r.mustImport(L, result, name))
}

func (r *run) callAction(name string, params map[string]any) (any, error) {
	ctx, cancel := r.actionContext()
	defer cancel()
	r.waiting.Store(true)
	defer func() {
		r.watch.rebase(r)
		r.waiting.Store(false)
		r.expire()
	}()
	return r.env.Action(ctx, name, params)
}

// exportObject converts a table that must be an object; an empty table is allowed.
func (r *run) exportObject(L *lua.LState, t *lua.LTable, root string) map[string]any {
	switch v := r.mustExport(L, t, root).(type) {
	case map[string]any:
		return v
	case []any:
		if len(v) > 0 {
			L.RaiseError("%s must be an object, not a list", root)
		}
	}
	return map[string]any{}
}

// errorTable returns an action's failure as a Lua error object with type, message
// and retryable. Raising it again preserves the failure.
func (r *run) errorTable(err error) *lua.LTable {
	failure := tea.AsError(err)
	t := r.m.root.CreateTable(0, 4)
	t.Metatable = r.m.errorMeta
	t.RawSetString("type", lua.LString(failure.Type))
	t.RawSetString("message", lua.LString(failure.Message))
	t.RawSetString("retryable", lua.LBool(failure.Retryable))
	if r.failures == nil {
		r.failures = map[*lua.LTable]error{}
	}
	r.failures[t] = err
	return t
}

func errorToString(L *lua.LState) int {
	t := L.CheckTable(1)
	return push(L, lua.LString(fmt.Sprintf("%s: %s", t.RawGetString("type"), t.RawGetString("message"))))
}

func errorConcat(L *lua.LState) int {
	r := runOf(L)
	a, b := r.display(L, L.Get(1)), r.display(L, L.Get(2))
	r.checkSize(L, len(a)+len(b))
	return push(L, lua.LString(a+b))
}

var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "warning": slog.LevelWarn, "error": slog.LevelError,
}

// teaLog writes a log record: tea.log(level, message, fields), or
// tea.log(message).
func teaLog(L *lua.LState) int {
	r := runOf(L)
	level, message := "info", 1
	if L.GetTop() > 1 {
		level, message = L.CheckString(1), 2
	}
	severity, ok := logLevels[level]
	if !ok {
		L.ArgError(1, "the level must be debug, info, warn or error")
	}
	text := r.display(L, L.CheckAny(message))
	var fields map[string]any
	if L.Get(3) != lua.LNil {
		fields = r.exportObject(L, L.CheckTable(3), "fields")
	}
	if r.env.Log != nil {
		r.env.Log(severity, text, fields)
	}
	return 0
}
