package script_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

func TestHostileScripts(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	const deadline = 50 * time.Millisecond
	quick := script.New(script.Options{Timeout: deadline})
	small := script.New(script.Options{Timeout: time.Minute, MemoryBytes: 24 << 20})
	plain := script.New(script.Options{Timeout: time.Minute})
	env := hostileEnv()
	for name, tt := range hostile { //nolint:paralleltest // time and memory are measured for the whole process
		t.Run(name, func(t *testing.T) {
			rt := plain
			switch tt.want {
			case script.DeadlineError:
				rt = quick
			case script.MemoryError:
				rt = small
			}
			within(t, grace, func() (overrun time.Duration, growth uint64) {
				begin := time.Now()
				growth = peak(func() {
					v, err := evalWith(t, rt, tt.text, env)
					var rerr *script.RunError
					if !errors.As(err, &rerr) || rerr.Kind != tt.want {
						t.Errorf("%s\ngot %v, %v; want kind %s", tt.text, v, err, tt.want)
					}
				})
				if tt.want == script.DeadlineError {
					overrun = time.Since(begin) - deadline
				}
				return overrun, growth
			})
			healthy(t, rt)
		})
	}
}

// healthy checks that a runtime still runs an ordinary script.
func healthy(t *testing.T, rt *script.Runtime) {
	t.Helper()
	const text = `
		local co = coroutine.wrap(function() coroutine.yield("c") end)
		local _, caught = pcall(error, "caught")
		return table.concat({string.rep("a", 2), ("b"):upper(), co(), caught, tostring(x), #tea.json.encode(state)}, ",")`
	got, err := evalWith(t, rt, text, script.Env{State: object{"k": int64(1)}})
	for range 5 { // a busy machine can take longer than the deadline
		var late *script.RunError
		if !errors.As(err, &late) || late.Kind != script.DeadlineError {
			break
		}
		got, err = evalWith(t, rt, text, script.Env{State: object{"k": int64(1)}})
	}
	if err != nil || got != "aa,B,c,caught,nil,7" {
		t.Errorf("the runtime is spoiled: %v, %v", got, err)
	}
}

func TestCancelEndsARunAtOnce(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	c, err := rt.Compile(script.Source{Name: "flow.yaml", Text: `print("started") while true do end`})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	env := script.Env{Log: func(slog.Level, string, map[string]any) { cancel() }}
	_, err = c.Run(ctx, env)
	var rerr *script.RunError
	if !errors.As(err, &rerr) || rerr.Kind != script.CanceledError || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	healthy(t, rt)
}

func TestContextDeadlineCounts(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	c, err := rt.Compile(script.Source{Name: "flow.yaml", Text: `while true do end`})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = c.Run(ctx, script.Env{})
	var rerr *script.RunError
	if !errors.As(err, &rerr) || rerr.Kind != script.DeadlineError || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestNothingLeaksBetweenRuns(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	for _, text := range []string{
		`leak = 1 _G.leak2 = 2 rawset(_G, "leak3", 3)`,
		`state.leak = 1 state.k = nil`,
		`pcall(function() string.leak = 1 end)`,
		`math.randomseed(99)`,
	} {
		if _, err := evalWith(t, rt, text, script.Env{State: object{"k": "v"}, Globals: script.Values{"item": "secret"}}); err != nil {
			t.Fatal(err)
		}
		got, err := evalWith(t, rt, `return {leak == nil, leak2 == nil, leak3 == nil, state.leak == nil, state.k == nil, string.leak == nil, item == nil, math.random(1000)}`, script.Env{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i, ok := range got.(list)[:7] {
			if ok != true {
				t.Errorf("after %s: value %d leaked", text, i+1)
			}
		}
	}
}

func TestDeepSyntaxIsRefused(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	rt := script.New(script.Options{})
	for name, text := range map[string]string{
		"not":       "return " + strings.Repeat("not ", 100_000) + "1",
		"tables":    "return " + strings.Repeat("{", 100_000) + strings.Repeat("}", 100_000),
		"functions": strings.Repeat("local f = function() ", 20_000) + strings.Repeat(" end", 20_000),
		"sum":       "return 1" + strings.Repeat(" + 1", 100_000),
		"concat":    `return "a"` + strings.Repeat(` .. "a"`, 100_000),
		"brackets":  "return " + strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000),
		"locals":    "local a" + strings.Repeat(", a", 300),
		"constants": "return {" + numbered("%d.5, ", 40_000) + "}",
		"names":     numbered("x%d = 1\n", 40_000),
		"methods":   numbered("x:m%d() ", 40_000),
		"size":      strings.Repeat(" ", 2<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := rt.Compile(script.Source{Name: "f", Text: text})
			var serr *script.SyntaxError
			if name == "brackets" && err == nil {
				_, err = c.Run(t.Context(), script.Env{}) // brackets leave nothing behind
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.As(err, &serr) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// numbered repeats a format with the numbers from 1.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

func TestLongSourcesCompileInTime(t *testing.T) { //nolint:paralleltest // time is measured
	peertest.Long(t, "it takes seconds")
	rt := script.New(script.Options{})
	for name, text := range map[string]string{ //nolint:paralleltest // time is measured
		"one line":    numbered("x = a%d ", 3_000),
		"functions":   strings.Repeat("x = function() return y end ", 5_000),
		"assignments": numbered("state.k%d = 1\n", 3_000) + "return {" + numbered("k%d = 1, ", 3_000) + "}",
		"long string": "return #[[" + strings.Repeat("x", 1_000_000) + "]]",
		"comments":    strings.Repeat("--[[]]", 150_000),
		"elseif":      "if a then " + strings.Repeat("elseif a then ", 900) + " end",
		"goto":        "::a:: " + strings.Repeat("if x then goto a end ", 40_000),
		"error":       strings.Repeat("x = 1\n", 150_000) + "=",
	} {
		t.Run(name, func(t *testing.T) {
			within(t, time.Second, func() (time.Duration, uint64) {
				begin := time.Now()
				grown := peak(func() {
					if _, err := rt.Compile(script.Source{Name: "f", Line: 1, Text: text}); (err != nil) != (name == "error") {
						t.Error(err)
					}
				})
				return time.Since(begin), grown
			})
		})
	}
}
