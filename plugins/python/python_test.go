package python_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/python"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

type object = map[string]any

// needPython skips the test without an interpreter; in CI it fails.
func needPython(t *testing.T) {
	t.Helper()
	peertest.Long(t, "it starts Python")
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no python3")
		}
		t.Skip("there is no python3")
	}
}

func on(more object) object {
	settings := object{"enabled": true}
	for key, v := range more {
		settings[key] = v
	}
	return object{"python": settings}
}

func run(t *testing.T, settings, params object, host *teatest.Host) (any, error) {
	t.Helper()
	return teatest.Call(t, python.Bundle(), teatest.Request{Action: "python.run", Settings: settings, Params: params, Host: host})
}

func TestCodeGetsTheStateAndReturnsAnUpdate(t *testing.T) {
	t.Parallel()
	needPython(t)
	state := object{"n": 7, "list": []any{1, 2.5, nil}, "big": int64(9007199254740993), "text": "ä\n"}
	for _, c := range []struct {
		code string
		want any
	}{
		{
			"return {'n': state['n'] // 2, 'm': state.n / 2, 'none': state.missing, 'gone': state['gone'], 'default': state.get('x', 3)}",
			object{"n": int64(3), "m": 3.5, "none": nil, "gone": nil, "default": int64(3)},
		},
		{"", object{}},
		{"# nothing", object{}},
		{"if state.n > 5:\n    return {'success': True}\nreturn {'success': False}", object{"success": true}},
		{
			"import re\nimport math as m\ndef f(x):\n    return f(x - 1) + 1 if x > 0 else m.floor(0.5)\nreturn {'r': [f(i) for i in range(3)], 'big': state.big + 1}",
			object{"r": []any{int64(0), int64(1), int64(2)}, "big": int64(9007199254740994)},
		},
		{
			"return {'text': '''a\n  b''', 'same': state['text'], 'day': str(datetime.date(2026, 1, 2)), 'tuple': (1, 2), 'data': data['k']}",
			object{"text": "a\n  b", "same": "ä\n", "day": "2026-01-02", "tuple": []any{int64(1), int64(2)}, "data": "v"},
		},
		{"return 5", int64(5)},
		{"return [json.loads('{\"a\": 1}'), parallel_results]", []any{object{"a": int64(1)}, []any{object{"branch": "b"}}}},
	} {
		got, err := run(t, on(nil), object{"code": c.code, "state": state, "data": object{"k": "v"}, "parallel_results": []any{object{"branch": "b"}}}, nil)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", c.code, err, diff)
		}
	}
}

func TestErrorsOfCode(t *testing.T) {
	t.Parallel()
	needPython(t)
	for _, c := range []struct {
		name, code string
		settings   object
		kind       tea.ErrorType
		text       string
		line       int
	}{
		{"disabled", "return {}", object{"enabled": false}, tea.PermissionDenied, "settings.python.enabled: true", 0},
		{"exception", "x = 1\n\nreturn x / 0", nil, "python_error", "ZeroDivisionError: division by zero", 3},
		{"in a function", "def f():\n    return unknown\nreturn f()", nil, "python_error", "NameError: name 'unknown'", 2},
		{"in a module", "\nreturn json.loads('{')", nil, "python_error", "JSONDecodeError", 2},
		{"syntax", "x = 1\nif x\n    pass", nil, tea.ValidationError, "SyntaxError: expected ':'", 2},
		{"exit", "import sys\nsys.exit(3)", nil, "python_error", "SystemExit: 3", 2},
		{"end", "import os\nos._exit(3)", nil, tea.PluginCrashed, "ended during the call", 0},
		{"not JSON", "return {'a': [1, {2}]}", nil, "python_error", "the result.a[1] is of type set", 0},
		{"not a number", "return {'a': float('nan')}", nil, "python_error", "the result.a is nan", 0},
		{"key", "return {1: 2}", nil, "python_error", "the key 1", 0},
		{"time", "while True: pass", object{"timeout_seconds": 0.5}, tea.Timeout, "timeout_seconds", 0},
		{"output", "while True: print('x' * 1000)", object{"max_output_bytes": 5000}, tea.ResourceExhausted, "max_output_bytes", 0},
		{"output of a program", "import subprocess\nsubprocess.run(['yes'])", object{"max_output_bytes": 5000}, tea.ResourceExhausted, "max_output_bytes", 0},
		{"recursion", "def f(): return f()\nf()", nil, "python_error", "RecursionError", 1},
		{"version", "return {}", object{"version": "3.99"}, tea.DependencyMissing, "requires 3.99 or later", 0},
		{"interpreter", "return {}", object{"interpreter": "no-such-python"}, tea.DependencyMissing, "settings.python.interpreter", 0},
		{"not an interpreter", "return {}", object{"interpreter": "false"}, tea.DependencyMissing, "does not start as an interpreter", 0},
		{"requirement", "return {}", object{"requirements": []any{"no-such-package==1.0"}}, tea.DependencyMissing, "lacks the requirements no-such-package==1.0; set settings.python.install", 0},
		{"option of pip", "return {}", object{"requirements": []any{"--index-url=x"}, "install": true}, tea.ValidationError, "is an option of pip", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			settings := on(c.settings)
			_, err := run(t, settings, object{"code": c.code}, nil)
			e := tea.AsError(err)
			if e == nil || e.Type != c.kind || !strings.Contains(e.Message, c.text) || e.Retryable {
				t.Fatalf("got %+v, want %s with %q", e, c.kind, c.text)
			}
			if _, line := e.CodeLine(); line != c.line {
				t.Errorf("line %d, want %d", line, c.line)
			}
		})
	}
	if runtime.GOOS == "linux" {
		_, err := run(t, on(object{"memory_mb": 100}), object{"code": "x = bytearray(300 << 20)"}, nil)
		if e := tea.AsError(err); e == nil || e.Type != tea.ResourceExhausted {
			t.Errorf("memory: %v", err)
		}
	}
}

func TestCodeCallsActions(t *testing.T) {
	t.Parallel()
	needPython(t)
	h := &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){
		"data.merge": func(context.Context, any) (any, error) { return object{"n": 1}, nil },
		"a.fails":    func(context.Context, any) (any, error) { return nil, tea.Errorf(tea.RateLimited, "later") },
	}}
	code := "r = actions.data_merge(sources=[1])\ntry:\n    actions['a.fails'](state=state, x=1)\nexcept Exception as e:\n    return {'n': r['n'], 'error': str(e), 'type': e.type}"
	got, err := run(t, on(nil), object{"code": code}, h)
	if diff := cmp.Diff(object{"n": int64(1), "error": "later", "type": "rate_limited"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	want := []teatest.Invoked{{Action: "data.merge", Params: object{"sources": []any{int64(1)}}}, {Action: "a.fails", Params: object{"x": int64(1)}}}
	if diff := cmp.Diff(want, h.Recorded().Invoked); diff != "" {
		t.Error(diff)
	}
	if _, err := run(t, on(nil), object{"code": "actions.a_fails()"}, h); tea.AsError(err).Type != tea.RateLimited {
		t.Errorf("the error of an action: %v", err)
	}
}

func TestCallsAFunctionOfAModule(t *testing.T) {
	t.Parallel()
	needPython(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pumps.py"), []byte("import os\ndef total(a, b=0):\n    print('adds')\n    return a + b + int(os.environ['EXTRA'])\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := on(object{"path": dir, "env": object{"EXTRA": "10"}})
	got, err := teatest.Call(t, python.Bundle(), teatest.Request{
		Action: "python.call", Settings: settings,
		Params: object{"module": "pumps", "function": "total", "args": []any{1}, "kwargs": object{"b": 2}},
	})
	if err != nil || got != int64(13) {
		t.Errorf("%v, %v", got, err)
	}
	_, err = teatest.Call(t, python.Bundle(), teatest.Request{Action: "python.call", Settings: settings, Params: object{"module": "pumps", "function": "totl"}})
	if err == nil || !strings.Contains(err.Error(), "has no attribute 'totl'") {
		t.Error(err)
	}
}

// wheel writes a package that pip can install without a network.
func wheel(t *testing.T, dir string) string {
	t.Helper()
	script := `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("teapump.py", "LEVEL = 7\n")
    z.writestr("teapump-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: teapump\nVersion: 1.0\n")
    z.writestr("teapump-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("teapump-1.0.dist-info/RECORD", "")
`
	path := filepath.Join(dir, "teapump-1.0-py3-none-any.whl")
	if out, err := exec.CommandContext(t.Context(), "python3", "-c", script, path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func TestInstallsRequirementsOnlyWhenAsked(t *testing.T) {
	needPython(t)
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	requirements := []any{"teapump @ file://" + filepath.ToSlash(wheel(t, dir))}
	code := object{"code": "import teapump\nreturn {'level': teapump.LEVEL}"}
	_, err := run(t, on(object{"requirements": requirements}), code, nil)
	if e := tea.AsError(err); e == nil || e.Type != tea.DependencyMissing {
		t.Fatalf("without install: %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "tea", "*", "*")); len(found) > 0 {
		t.Errorf("it has installed %v", found)
	}
	for range 2 {
		got, err := run(t, on(object{"requirements": requirements, "install": true}), code, nil)
		if diff := cmp.Diff(object{"level": int64(7)}, got); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	}
	_, err = run(t, on(object{"requirements": []any{"teapump @ file:///no/such/file.whl"}, "install": true}), code, nil)
	if e := tea.AsError(err); e == nil || e.Type != tea.DependencyMissing || !strings.Contains(e.Message, "-m pip") {
		t.Errorf("a package that does not exist: %v", err)
	}
}
