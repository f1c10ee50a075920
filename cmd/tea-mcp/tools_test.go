package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const greet = `
name: greet
description: Greets somebody.
state_schema:
  name: {type: str, required: true, description: who is greeted}
  times: {type: int, default: 1}
  tags: list
  extra: any
initial_state: {tags: [a], polite: true}
nodes:
  - name: hello
    run: |
      tea.log("info", "greeting " .. state.name)
      return {greeting = string.rep("Hello " .. state.name .. "!", state.times)}
`

// toolNames lists the tools except resume.
func (c *client) toolNames() []string {
	c.t.Helper()
	res, err := c.ListTools(c.t.Context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	names := []string{}
	for _, tool := range res.Tools {
		if tool.Name != "resume" {
			names = append(names, tool.Name)
		}
	}
	return names
}

func TestWorkflowIsTool(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := newProject(t, map[string]string{"greet.yaml": greet}).start(nil, version)
			res, err := c.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			tool := res.Tools[0]
			if tool.Name != "greet" || tool.Description != "Greets somebody." {
				t.Errorf("tool %q: %q", tool.Name, tool.Description)
			}
			want := map[string]any{
				"type": "object",
				"properties": map[string]any{
					"name":   map[string]any{"type": "string", "description": "who is greeted"},
					"times":  map[string]any{"type": "integer", "default": 1.0},
					"tags":   map[string]any{"type": "array", "default": []any{"a"}},
					"extra":  map[string]any{},
					"polite": map[string]any{"default": true},
				},
				"required": []any{"name"},
			}
			if diff := cmp.Diff(want, tool.InputSchema); diff != "" {
				t.Errorf("input schema (-want +got):\n%s", diff)
			}
			out := c.call("greet", map[string]any{"name": "Ada", "times": 2})
			if out.Status != "done" || out.State["greeting"] != "Hello Ada!Hello Ada!" || out.isError {
				t.Errorf("result: %+v", out)
			}
			var fromText map[string]any
			if err := json.Unmarshal([]byte(out.text), &fromText); err != nil || fromText["run_id"] != out.RunID {
				t.Errorf("the text is not the result as JSON: %v: %s", err, out.text)
			}
		})
	}
}

func TestInputThatDoesNotFitIsNamed(t *testing.T) {
	t.Parallel()
	c := newProject(t, map[string]string{"greet.yaml": greet}).start(nil, "")
	out := c.call("greet", map[string]any{"times": "often"})
	for _, want := range []string{"name", "times", "int"} {
		if !out.isError || !strings.Contains(out.text, want) {
			t.Errorf("the result does not name %s: %+v", want, out)
		}
	}
	if list := c.read("tea://runs")["runs"].([]any); len(list) != 0 {
		t.Errorf("a run began: %v", list)
	}
}

func TestFailedRunIsError(t *testing.T) {
	t.Parallel()
	c := newProject(t, map[string]string{"fail.yaml": `nodes: [{name: n, run: 'error("no luck today")'}]`}).start(nil, "")
	out := c.call("fail", nil)
	if !out.isError || out.Status != "failed" || !strings.Contains(out.Error, "no luck today") || out.RunID == "" {
		t.Errorf("result: %+v", out)
	}
}

func TestBrokenWorkflowLeavesTheOthers(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"greet.yaml": greet, "bad.yaml": "nodes:\n  - name: x\n    uses: jsn.parse\n", "greet_test.yaml": "tests: []", ".hidden.yaml": "a", "notes.txt": "b",
	})
	c := p.start(nil, "")
	c.log.await(t, "bad.yaml:3:11: error TEA1401")
	c.log.await(t, "bad.yaml: it is not offered")
	if diff := cmp.Diff([]string{"greet"}, c.toolNames()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	flow := func(name string) string { return fmt.Sprintf("name: %q\nnodes: [{name: n}]\n", name) }
	p := newProject(t, map[string]string{
		"a.yaml": flow("same"), "b.yaml": flow("same"), "c.yaml": flow("Tägliche Übersicht/1"), "d.yaml": flow("日本語"),
		"e.yaml": flow("resume"), "f.yaml": flow(strings.Repeat("x", 65)), "g-h.yml": "nodes: [{name: n}]",
	})
	c := p.start(nil, "")
	if diff := cmp.Diff([]string{"T_gliche__bersicht_1", "g-h", "same"}, c.toolNames()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	for _, want := range []string{
		`b.yaml: it is not offered: tool name "same" is already used by`,
		`c.yaml: the workflow "Tägliche Übersicht/1" is offered as T_gliche__bersicht_1`,
		`d.yaml: it is not offered: the name "日本語" has none of the letters`,
		`e.yaml: it is not offered: the name "resume" is reserved for the tool`,
		`f.yaml: it is not offered: the name "` + strings.Repeat("x", 65) + `" has more than 64 characters`,
	} {
		c.log.await(t, want)
	}
}

func TestLinkOutOfTheDirectoryIsNotOffered(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	other := newProject(t, map[string]string{"other.yaml": greet})
	for name, target := range map[string]string{"inside.yaml": "greet.yaml", "outside.yaml": filepath.Join(other.dir, "other.yaml")} {
		if err := os.Symlink(target, filepath.Join(p.dir, name)); err != nil {
			t.Skip(err)
		}
	}
	c := p.start(nil, "")
	c.log.await(t, "outside.yaml: it is not offered: it leads out of the directory")
	c.log.await(t, "inside.yaml: it is not offered: tool name")
}

// changes returns options of a client that sends each change of the list of
// tools.
func changes() (*mcp.ClientOptions, chan struct{}) {
	changed := make(chan struct{}, 100)
	return &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }}, changed
}

func TestChangedFilesAreLoadedAgain(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, map[string]string{
				"flow.yaml": "imports: [{path: lib/m.lua, namespace: m}]\nnodes: [{name: n, uses: m.word, output: word}]\n",
				"lib/m.lua": `return {register_actions = function(r) r.word = function() return "one" end end}`,
			})
			o, changed := changes()
			const offered = `msg="workflow offered" tool=flow`
			c := p.start(o, version, "-v")
			c.log.await(t, offered)
			if out := c.call("flow", nil); out.State["word"] != "one" {
				t.Fatalf("first: %+v", out)
			}
			p.write("lib/m.lua", `return {register_actions = function(r) r.word = function() return "second" end end}`)
			c.log.await(t, offered) // the client is not notified: the tool is the same
			if out := c.call("flow", nil); out.State["word"] != "second" {
				t.Errorf("after the change: %+v", out)
			}
			p.write("new.yaml", "nodes: [{name: n}]")
			<-changed
			if diff := cmp.Diff([]string{"flow", "new"}, c.toolNames()); diff != "" {
				t.Errorf("with a new file (-want +got):\n%s", diff)
			}
			p.write("new.yaml", "nodes: [{name: n, uses: jsn.parse}]")
			c.log.await(t, "new.yaml: the tool new remains as it was before")
			if out := c.call("new", nil); out.Status != "done" {
				t.Errorf("the version before the mistake: %+v", out)
			}
			if err := os.Remove(filepath.Join(p.dir, "new.yaml")); err != nil {
				t.Fatal(err)
			}
			<-changed
			if diff := cmp.Diff([]string{"flow"}, c.toolNames()); diff != "" {
				t.Errorf("without the file (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoCallFailsWhileFilesChange(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"flow.yaml": "nodes: [{name: n, run: 'return {version = 0}'}]"})
	c := p.start(nil, "", "-v", "--durability", "exit")
	c.log.await(t, "workflow offered")
	done := make(chan struct{})
	var callers sync.WaitGroup
	finish := sync.OnceFunc(func() { close(done); callers.Wait() })
	ctx, cancel := context.WithCancel(t.Context())
	defer func() { cancel(); finish() }()
	for range 4 {
		callers.Go(func() {
			last := 0.0
			for {
				res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "flow"})
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					t.Errorf("call: %v", err)
					return
				}
				out := readOutcome(t, res)
				version, _ := out.State["version"].(float64)
				if out.Status != "done" || version < last {
					t.Errorf("after version %v: %+v", last, out)
				}
				last = version
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for version := range 3 {
		p.write("flow.yaml", fmt.Sprintf("nodes: [{name: n, run: 'return {version = %d}'}]", version+1))
		c.log.await(t, "workflow offered")
	}
	finish()
}

func TestRepairedImportOffersTheWorkflow(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"flow.yaml": "imports: [{path: m.lua, namespace: m}]\nnodes: [{name: n, uses: m.word, output: word}]\n"})
	o, changed := changes()
	c := p.start(o, "")
	c.log.await(t, "flow.yaml: it is not offered")
	p.write("m.lua", `return {register_actions = function(r) r.word = function() return "one" end end}`)
	<-changed
	if out := c.call("flow", nil); out.State["word"] != "one" {
		t.Errorf("result: %+v", out)
	}
}

func TestProgressAndLog(t *testing.T) {
	t.Parallel()
	progress := make(chan mcp.ProgressNotificationParams, 100)
	logged := make(chan mcp.LoggingMessageParams, 100)
	o := &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- *r.Params },
		LoggingMessageHandler:       func(_ context.Context, r *mcp.LoggingMessageRequest) { logged <- *r.Params },
	}
	c := newProject(t, map[string]string{"greet.yaml": greet}).start(o, "2025-11-25")
	if err := c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		t.Fatal(err)
	}
	params := &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ada"}}
	params.SetProgressToken("p1")
	if _, err := c.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"hello started", "hello finished"} {
		got := <-progress
		if got.Message != want || got.ProgressToken != "p1" || got.Progress != float64(i+1) {
			t.Errorf("progress %d: %+v, want %q", i, got, want)
		}
	}
	if got := <-logged; got.Data != "greeting Ada" || got.Level != "info" {
		t.Errorf("log message: %+v", got)
	}
}
