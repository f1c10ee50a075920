package script_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/script"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestErrorPositions(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	for name, tt := range map[string]struct {
		text, message string
		line          int
	}{
		"raised":             {"\nerror('bad')", "bad", 12},
		"caller's":           {"local function f()\n  error('bad', 2)\nend\nf()", "bad", 14},
		"without a position": {"\n\nerror('bad', 0)", "bad", 13},
		"table":              {"\nerror({message = 'odd'})", "odd", 12},
		"index of nil":       {"local x\nreturn x.y", "attempt to index a non-table object(nil) with key 'y'", 12},
		"unknown global":     {"\nprint(typo.x)", `attempt to index a non-table object(nil) with key 'x' (the global name "typo" is not defined)`, 12},
		"withheld":           {"\nos.exit()", "attempt to index a non-table object(nil) with key 'exit' (os is not available in the sandbox)", 12},
		"argument":           {"\nstring.rep()", "bad argument #1 to rep (string expected, got nil)", 12},
		"concatenation":      {"local x\nreturn 'a' .. x", "attempt to concatenate a nil value", 12},
		"in a coroutine":     {"coroutine.wrap(function()\n  error('bad')\nend)()", "bad", 12},
		"in a callback":      {"string.gsub('a', 'a', function()\n  error('bad')\nend)", "bad", 12},
		"reraised":           {"local ok, e = pcall(function()\n  error('bad')\nend)\nerror(e, 0)", "bad", 12},
		"string too long":    {"\nreturn ('x'):rep(1e9)", "string too long: at most 16777216 bytes are allowed", 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := rt.Compile(script.Source{Name: "my: flow.yaml", Line: 11, Text: tt.text})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Run(t.Context(), script.Env{})
			var rerr *script.RunError
			if !errors.As(err, &rerr) {
				t.Fatalf("got %v", err)
			}
			if rerr.File != "my: flow.yaml" || rerr.Line != tt.line || rerr.Message != tt.message {
				t.Errorf("got %v", rerr)
			}
		})
	}
}

func TestAction(t *testing.T) {
	t.Parallel()
	failure := &tea.Error{Type: tea.RateLimited, Message: "slow down", Retryable: true, Source: "api"}
	env := script.Env{Action: func(_ context.Context, name string, params any) (any, error) {
		switch name {
		case "echo":
			return object{"success": true, "params": params}, nil
		case "fail":
			return nil, fmt.Errorf("call fail: %w", failure)
		}
		return nil, tea.Errorf(tea.NotFound, "no action %q", name)
	}}
	for name, tt := range map[string]struct {
		text string
		want any
	}{
		"result":         {`return tea.action("echo", {a = {1, 2}}).params`, object{"a": list{int64(1), int64(2)}}},
		"no params":      {`return tea.action("echo").params`, object{}},
		"caught":         {`local ok, err = pcall(tea.action, "fail", {}) return {ok, err.type, err.message, err.retryable, tostring(err), "got " .. err}`, list{false, "rate_limited", "slow down", true, "rate_limited: slow down", "got rate_limited: slow down"}},
		"in a pcall":     {`local ok, err = pcall(function() return tea.action("none") end) return err.type`, "not_found"},
		"in a coroutine": {`return coroutine.wrap(function() return tea.action("echo", {x = 1}).params.x end)()`, int64(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, mustEval(t, tt.text, env)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, text := range map[string]string{
		"uncaught": `return tea.action("fail", {})`,
		"reraised": `local ok, err = pcall(tea.action, "fail") error(err)`,
		"asserted": `assert(pcall(tea.action, "fail"))`,
		"wrapped":  `coroutine.wrap(function() tea.action("fail") end)()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := eval(t, text, env)
			var rerr *script.RunError
			var terr *tea.Error
			if !errors.As(err, &rerr) || rerr.Kind != script.ActionError || rerr.Line != 1 || !errors.As(err, &terr) || terr != failure {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestActionIsCanceledWithTheRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	rt := script.New(script.Options{})
	c, err := rt.Compile(script.Source{Name: "f", Text: `pcall(tea.action, "wait") return "swallowed"`})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Run(ctx, script.Env{Action: func(ctx context.Context, _ string, _ any) (any, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestActionEndsWithTheDeadline(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{Timeout: 20 * time.Millisecond})
	c, err := rt.Compile(script.Source{Name: "f", Text: `tea.action("wait")`})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Run(t.Context(), script.Env{Action: func(ctx context.Context, _ string, _ any) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	var rerr *script.RunError
	if !errors.As(err, &rerr) || rerr.Kind != script.DeadlineError {
		t.Errorf("got %v", err)
	}
}

func TestNoAction(t *testing.T) {
	t.Parallel()
	_, err := eval(t, `tea.action("x")`, script.Env{})
	if err == nil || !strings.Contains(err.Error(), "tea.action is not available here") {
		t.Errorf("got %v", err)
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	type record struct {
		Level   slog.Level
		Message string
		Fields  map[string]any
	}
	var got []record
	env := script.Env{Log: func(level slog.Level, message string, fields map[string]any) {
		got = append(got, record{level, message, fields})
	}}
	mustEval(t, `
		print("a", 1, nil, true)
		tea.log("just text")
		tea.log("warn", "low battery", {volts = 3.2})`, env)
	want := []record{
		{slog.LevelInfo, "a\t1\tnil\ttrue", nil},
		{slog.LevelInfo, "just text", nil},
		{slog.LevelWarn, "low battery", object{"volts": 3.2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := eval(t, `tea.log("loud", "x")`, env); err == nil {
		t.Error("an unknown level passed")
	}
}

func TestRandomNumbersFollowTheSeed(t *testing.T) {
	t.Parallel()
	const text = `return {math.random(1e9), math.random(), math.random(5, 6)}`
	first := mustEval(t, text, script.Env{Seed: 7})
	if diff := cmp.Diff(first, mustEval(t, text, script.Env{Seed: 7})); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(first, mustEval(t, text, script.Env{Seed: 8})) {
		t.Error("another seed drew the same numbers")
	}
}

const geometry = `
local M = {}
local calls = 0
__tea_actions__ = {
  area = {description = "area of a circle", params = {type = "object", properties = {r = {type = "number"}}}},
}
function M.square(x) return x * x end
function M.register_actions(registry)
  registry.area = function(state, params)
    calls = calls + 1
    return {area = 3 * M.square(params.r), unit = state.unit, calls = calls}
  end
  registry.fail = function() error("no shape") end
end
return M`

func TestModule(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	m, err := loadModule(t, rt, script.Source{Name: "geometry.lua", Text: geometry})
	if err != nil {
		t.Fatal(err)
	}
	wantActions := []script.ModuleAction{
		{Name: "area", Description: "area of a circle", Params: object{"type": "object", "properties": object{"r": object{"type": "number"}}}},
		{Name: "fail"},
	}
	if diff := cmp.Diff(wantActions, m.Actions()); diff != "" {
		t.Error(diff)
	}
	for range 2 { // nothing is kept between calls
		got, err := m.Call(t.Context(), "area", script.Env{State: object{"unit": "m2"}}, object{"r": int64(2)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(any(object{"area": int64(12), "unit": "m2", "calls": int64(1)}), got); diff != "" {
			t.Error(diff)
		}
	}
	_, err = m.Call(t.Context(), "fail", script.Env{}, nil)
	var rerr *script.RunError
	if !errors.As(err, &rerr) || rerr.File != "geometry.lua" || rerr.Line != 13 || rerr.Message != "no shape" {
		t.Errorf("got %v", err)
	}
	if _, err = m.Call(t.Context(), "other", script.Env{}, nil); err == nil {
		t.Error("an unknown action was called")
	}
	env := script.Env{Modules: map[string]*script.Module{"geometry": m}}
	got, err := evalWith(t, rt, `local g = require("geometry") return {g.square(3), g == require("geometry")}`, env)
	if diff := cmp.Diff(any(list{int64(9), true}), got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	_, err = evalWith(t, rt, `return require("geometri")`, env)
	if err == nil || !strings.Contains(err.Error(), `module "geometri" is not imported; did you mean "geometry"?`) {
		t.Errorf("got %v", err)
	}
}

// The file name of a module is not its name for require if it has a namespace.
func TestRequireNamesTheNamespaceOfAFile(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	m, err := loadModule(t, rt, script.Source{Name: "lib/geometry.lua", Text: `return {}`})
	if err != nil {
		t.Fatal(err)
	}
	_, err = evalWith(t, rt, `return require("geometry")`, script.Env{Modules: map[string]*script.Module{"geo": m}})
	if want := `module "geometry" is imported with namespace "geo"; use require("geo")`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestInvalidModules(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	for text, want := range map[string]string{
		`return 1`:                      "m.lua: a module must return a table, not a number",
		`return {register_actions = 1}`: "m.lua: register_actions must be a function, not a number",
		`return {register_actions = function(r) r.x = 1 end}`:                                       `m.lua: registry["x"] must be a function under a name`,
		`return {register_actions = function(r) r.area = print end, __tea_actions__ = {aera = {}}}`: `m.lua: __tea_actions__ describes "aera", which register_actions does not register; did you mean "area"?`,
		"\nerror('at load')":  "m.lua:2: at load",
		`return {`:            "m.lua:1:9: unexpected end of the script (add }: the { in line 1 is not closed)",
		`while true do end`:   "m.lua: the script exceeded its time limit",
		`return require("m")`: `m.lua:1: module "m" is not imported`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			rt := rt
			if strings.HasPrefix(text, "while") {
				rt = script.New(script.Options{Timeout: 20 * time.Millisecond})
			}
			_, err := loadModule(t, rt, script.Source{Name: "m.lua", Text: text})
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestModulesRequireEachOther(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	load := func(name, text string) *script.Module {
		m, err := loadModule(t, rt, script.Source{Name: name, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	env := script.Env{Modules: map[string]*script.Module{
		"a": load("a.lua", `local M = {} function M.f() return require("b").g() .. "a" end return M`),
		"b": load("b.lua", `local M = {} function M.g() return "b" end return M`),
		"c": load("c.lua", `if tea.loop then return {} end local M = {again = function() return require("c") end} return M`),
	}}
	got, err := evalWith(t, rt, `return require("a").f() .. tostring(require("c").again() == require("c"))`, env)
	if err != nil || got != "batrue" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestConcurrentRuns(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	c, err := rt.Compile(script.Source{Name: "f", Text: `
		local sum = 0
		for i, v in ipairs(state.list) do sum = sum + v end
		local _, e = pcall(error, "x" .. item)
		return {sum = sum, e = e}`})
	if err != nil {
		t.Fatal(err)
	}
	state := object{"list": list{int64(1), int64(2), int64(3)}}
	done := make(chan error)
	for i := range 8 {
		go func() {
			for range 50 {
				got, err := c.Run(t.Context(), script.Env{State: state, Globals: script.Values{"item": int64(i)}})
				if want := any(object{"sum": int64(6), "e": fmt.Sprintf("x%d", i)}); err == nil && !cmp.Equal(want, got) {
					err = fmt.Errorf("got %v", got)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func loadModule(t *testing.T, rt *script.Runtime, src script.Source) (*script.Module, error) {
	t.Helper()
	m, err := rt.CompileModule(src)
	if err != nil {
		return nil, err
	}
	return m, m.FindActions(t.Context(), nil)
}
