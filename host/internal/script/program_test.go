package script_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// Equal texts share their code, but every place has its own positions.
func TestEqualTextsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	const text = "local f = function() return state.missing.x end\nstate.y = unknown\nlocal v = f()\nreturn v"
	for _, src := range []script.Source{{Name: "a.yaml", Text: text}, {Name: "a.yaml", Line: 10, Column: 5, Text: text}, {Name: "b.yaml", Line: 3, Column: 1, Text: text}} {
		chunk, err := rt.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		line, column := max(src.Line, 1), max(src.Column, 1)
		want := [][]script.Position{{{Line: line + 1, Column: column}}, {{Line: line, Column: column + 28}}, {{Line: line + 1, Column: column + 10}}}
		got := [][]script.Position{chunk.StateAssignments(), {chunk.StateReads()[0].Position}, {chunk.Globals()[0].Position}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%+v: %s", src, d)
		}
		_, err = chunk.Run(t.Context(), script.Env{State: object{}})
		var failure *script.RunError
		if !errors.As(err, &failure) || failure.File != src.Name || failure.Line != line || !strings.Contains(failure.Traceback, fmt.Sprintf("%s:%d", src.Name, line+2)) {
			t.Errorf("%+v: %v\n%s", src, err, failure.Traceback)
		}
	}
}

// What the compiler refuses is found by Compile, not by the first run.
func TestCompileFindsEveryMistake(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	rt := script.New(script.Options{})
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for size := 5; size <= 400; size += 5 {
		for name, text := range map[string]string{
			"locals":     list(size, "local a%d\n") + "return 1",
			"names":      "local a" + list(size, ", a%d") + "\nreturn 1",
			"parameters": "local f = function(a" + list(size, ", a%d") + ") end\nreturn 1",
			"arguments":  "return 1, tostring(1" + list(size, ", %d") + ")",
			"calls":      "return " + strings.Repeat("tostring(1, ", size) + "1" + strings.Repeat(")", size),
			"operators":  "local a = 1 return " + strings.Repeat("a + (", size) + "a" + strings.Repeat(")", size),
			"loops":      strings.Repeat("for i = 1, 1 do ", size) + strings.Repeat(" end", size),
			"iterators":  strings.Repeat("for i, v in pairs({}) do ", size) + strings.Repeat(" end", size),
			"tables":     "return " + strings.Repeat("{1, ", size) + strings.Repeat("}", size),
			"upvalues":   list(size, "local a%d = 1\n") + "return (function() return a0" + list(size, " + a%d") + " end)()",
			"methods":    "return (''" + strings.Repeat("):sub((''", size) + ")" + strings.Repeat(")", size),
		} {
			chunk, err := rt.Compile(script.Source{Text: text})
			if err != nil {
				continue
			}
			if _, err := chunk.Run(t.Context(), script.Env{}); errors.As(err, new(*script.SyntaxError)) {
				t.Errorf("%d %s: %v", size, name, err)
			}
		}
	}
}

// CompileAll changes neither results nor errors of a later Compile.
func TestCompileAllLeavesMistakesToCompile(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	sources := make([]script.Source, 100)
	for i := range sources {
		sources[i] = script.Source{Name: "a.yaml", Line: i + 1, Text: fmt.Sprintf("return %d", i)}
		if i%10 == 3 {
			sources[i].Text += " +"
		}
	}
	rt.CompileAll(sources)
	alone := script.New(script.Options{})
	for i, src := range sources {
		chunk, err := rt.Compile(src)
		_, want := alone.Compile(src)
		if d := cmp.Diff(fmt.Sprint(want), fmt.Sprint(err)); d != "" {
			t.Errorf("%d (-want +got):\n%s", i, d)
		}
		if err != nil {
			continue
		}
		if got, err := chunk.Run(t.Context(), script.Env{State: object{}}); err != nil || got != int64(i) {
			t.Errorf("%d: got %v, %v", i, got, err)
		}
	}
}
