package codeactions_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/builtin/codeactions"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// command starts the real binary: one with the race detector does not fit into the
// child's memory limit.
var command []string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "tea-code")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary := filepath.Join(dir, "tea")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/the-edge-agent/tea/cmd/tea").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build tea: %v\n%s", err, out)
		os.Exit(1)
	}
	command = []string{binary, "__run-code"}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func execute(t *testing.T, enabled bool, params map[string]any) (any, error) {
	t.Helper()
	return teatest.Call(t, *codeactions.Bundle("1.0.0", command), teatest.Request{
		Action: "code.execute", Params: params, Settings: map[string]any{"code": map[string]any{"enabled": enabled}},
	})
}

func TestExecute(t *testing.T) {
	t.Parallel()
	got, err := execute(t, true, map[string]any{
		"code": "print('sum') return {sum = input.a + input.b, id = input.id}", "input": map[string]any{"a": 1, "b": 2, "id": int64(9007199254740993)},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, _ := got.(map[string]any)
	delete(result, "execution_time_ms")
	want := map[string]any{"success": true, "return_value": map[string]any{"sum": int64(3), "id": int64(9007199254740993)}, "stdout": "sum\n"}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Error(diff)
	}
}

func TestExecuteIsBounded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		off    bool
		params map[string]any
		want   tea.ErrorType
		words  string
	}{
		{"off unless enabled", true, map[string]any{"code": "return 1"}, tea.PermissionDenied, "code.execute is disabled"},
		{"endless loop", false, map[string]any{"code": "while true do end", "timeout_seconds": 0.05}, tea.Timeout, "exceeded its time limit"},
		{"caught deadline", false, map[string]any{"code": "while true do pcall(function() while true do end end) end", "timeout_seconds": 0.05}, tea.Timeout, "exceeded its time limit"},
		{"huge table", false, map[string]any{"code": "local t = {} for i = 1, 1e9 do t[i] = {i} end", "memory_mb": 16}, tea.ResourceExhausted, "memory"},
		{"sparse tables", false, map[string]any{"code": "local t = {} while true do local s = {} s[2^20 - 1] = 1 t[#t + 1] = s end", "memory_mb": 16}, tea.ResourceExhausted, "memory"},
		{"many strings", false, map[string]any{"code": "local t = {} while true do t[#t + 1] = ('x'):rep(4e6) end", "memory_mb": 16}, tea.ResourceExhausted, "memory"},
		{"huge source", false, map[string]any{"code": "x = " + strings.Repeat("(", 900_000), "memory_mb": 16}, tea.ResourceExhausted, "memory"},
		{"huge result", false, map[string]any{"code": "local s = ('\\1'):rep(1.5e7) return {s, s, s, s}", "memory_mb": 64}, tea.ResourceExhausted, "memory"},
		{"large JSON", false, map[string]any{"code": "return tea.json.decode('[' .. ('{},'):rep(5e6) .. '0]')", "memory_mb": 200}, tea.ResourceExhausted, "more values than fit in memory"},
		{"string bomb", false, map[string]any{"code": "return ('x'):rep(1e12)"}, tea.ResourceExhausted, "too long"},
		{"recursion", false, map[string]any{"code": "local function f() return 1 + f() end return f()"}, tea.InternalError, "overflow"},
		{"large error", false, map[string]any{"code": "error(('x'):rep(1e7))"}, tea.InternalError, "xxx"},
		{"flood of output", false, map[string]any{"code": "for i = 1, 1000 do print(i) end", "max_output_bytes": 100}, tea.ResourceExhausted, "max_output_bytes"},
		{"endless output", false, map[string]any{"code": "while true do print(('x'):rep(1e6)) end", "timeout_seconds": 0.05, "max_output_bytes": 100}, tea.Timeout, "exceeded its time limit"},
		{"output as large as memory", false, map[string]any{"code": "while true do print(('x'):rep(1e6)) end", "memory_mb": 16, "max_output_bytes": 2_000_000_000}, tea.ResourceExhausted, "memory"},
		{"no files", false, map[string]any{"code": "return io.open('/etc/passwd')"}, tea.InternalError, "io is not available"},
		{"no actions", false, map[string]any{"code": "return tea.action('file.read', {path = '/etc/passwd'})"}, tea.InternalError, "tea.action is not available here"},
		{"syntax", false, map[string]any{"code": "return return"}, tea.ValidationError, "syntax error"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := execute(t, !test.off, test.params)
			var failure *tea.Error
			if !errors.As(err, &failure) || failure.Type != test.want || !strings.Contains(failure.Message, test.words) {
				t.Fatalf("err = %.300v, want %s with %q", err, test.want, test.words)
			}
			if strings.Contains(failure.Message, string(failure.Type)) {
				t.Errorf("the message says the type once more: %.300q", failure.Message)
			}
		})
	}
}
