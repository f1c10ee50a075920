package graph_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

var update = flag.Bool("update", false, "write the golden files")

// actions is a catalog of a few actions.
// laterParams are those of an action that calls another one.
type laterParams struct {
	Plan plan `json:"plan"`
	Each struct {
		Uses string `json:"uses"`
		With later  `json:"with,omitempty"`
	} `json:"each,omitempty"`
}

type plan struct{}

func (plan) JSONSchema() *schema.Schema {
	return &schema.Schema{Type: schema.Types{"object"}, Extra: map[string]any{"examples": []any{"{{ state.plan }}"}}}
}

type later struct{}

func (later) JSONSchema() *schema.Schema {
	return &schema.Schema{Extra: map[string]any{tea.Templates: []any{"task", "results"}, tea.ParamsOf: "uses", "examples": []any{"{{ task.text }}"}}}
}

type actions map[string]tea.ActionInfo

func (a actions) Describe(name string) (tea.ActionInfo, bool) {
	info, ok := a[name]
	return info, ok
}

func (a actions) Names() []string {
	var names []string
	for name := range a {
		names = append(names, name)
	}
	return names
}

type getParams struct {
	URL     string            `json:"url" minLength:"1"`
	Headers map[string]string `json:"headers,omitempty"`
	Timeout float64           `json:"timeout_seconds,omitempty" minimum:"0"`
	Mode    string            `json:"mode,omitempty" enum:"fast,slow"`
	Pages   []page            `json:"pages,omitempty"`
}

type askParams struct {
	Question  string  `json:"question"`
	Timeout   float64 `json:"timeout_seconds,omitempty"`
	OnTimeout string  `json:"on_timeout,omitempty"`
}

type noteParams struct {
	Key         string            `json:"key"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Description string            `json:"description,omitempty"`
}

type namedParams struct {
	Name     string            `json:"name"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

type page struct {
	Name string `json:"name" pattern:"^[a-z]+$"`
	Size int    `json:"size,omitempty"`
}

type getResult struct {
	Success bool   `json:"success"`
	Status  int    `json:"status"`
	Text    string `json:"text"`
}

func catalog() actions {
	return actions{
		"web.get":   {Name: "web.get", Params: schema.Of[getParams](), Result: schema.Of[getResult]()},
		"any.call":  {Name: "any.call"},
		"any.ask":   {Name: "any.ask", Params: schema.Of[askParams]()},
		"any.note":  {Name: "any.note", Params: schema.Of[noteParams]()},
		"any.later": {Name: "any.later", Params: schema.Of[laterParams]()},
		"any.named": {Name: "any.named", Params: schema.Of[namedParams]()},

		"human.ask": {Name: "human.ask"}, "file.write": {Name: "file.write"}, "file.append": {Name: "file.append"}, "fs.write": {Name: "file.write"},
		"once.write": {Name: "once.write", Once: true}, "agent.run": {Name: "agent.run", Reads: true},
	}
}

// compile loads flow.yaml of an archive, which the loader must accept, and
// compiles it.
func compile(t *testing.T, archive *txtar.Archive) (*graph.Graph, diag.List) {
	t.Helper()
	read := func(name string) ([]byte, error) {
		for _, f := range archive.Files {
			if f.Name == name {
				return f.Data, nil
			}
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	wf, diags := spec.Load("flow.yaml", spec.Options{ReadFile: read})
	if len(diags) > 0 {
		t.Fatalf("the loader finds:\n%v", diags)
	}
	lua := script.New(script.Options{})
	return graph.Compile(wf, graph.Env{Lua: lua, Actions: catalog(), Settings: []string{"llm", "trace"}})
}

// golden runs each archive of a directory under testdata and compares what
// comes of it with its section want.
func golden(t *testing.T, dir string, render func(t *testing.T, archive *txtar.Archive) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			last := len(archive.Files) - 1
			if archive.Files[last].Name != "want" {
				archive.Files = append(archive.Files, txtar.File{Name: "want"})
				last++
			}
			got := render(t, archive)
			if *update {
				archive.Files[last].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(archive.Files[last].Data), got); d != "" {
				t.Errorf("differs (-want +got):\n%s", d)
			}
		})
	}
}

func lines(diags diag.List) string {
	var b strings.Builder
	for _, d := range diags {
		fmt.Fprintln(&b, d.Error())
	}
	return b.String()
}

// TestDiagnostics compiles wrong and odd workflows.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	golden(t, "diagnostics", func(t *testing.T, archive *txtar.Archive) string {
		g, diags := compile(t, archive)
		if (g == nil) != diags.HasErrors() {
			t.Errorf("graph = %v next to these diagnostics", g != nil)
		}
		return lines(diags)
	})
}

// TestCheck runs the checks of validate --strict on workflows that compile.
func TestCheck(t *testing.T) {
	t.Parallel()
	golden(t, "check", func(t *testing.T, archive *txtar.Archive) string {
		g, diags := compile(t, archive)
		if g == nil {
			t.Fatalf("does not compile:\n%v", diags)
		}
		return lines(graph.Check(g))
	})
}

// TestMissingDirs finds files that are written to directories that do not exist.
func TestMissingDirs(t *testing.T) {
	t.Parallel()
	golden(t, "dirs", func(t *testing.T, archive *txtar.Archive) string {
		g, diags := compile(t, archive)
		if g == nil {
			t.Fatalf("does not compile:\n%v", diags)
		}
		return lines(graph.MissingDirs(g, func(file string) string { return strings.TrimPrefix(path.Dir(file), ".") }))
	})
}

// TestRoutes writes out where the nodes of workflows lead.
func TestRoutes(t *testing.T) {
	t.Parallel()
	golden(t, "routes", func(t *testing.T, archive *txtar.Archive) string {
		g, diags := compile(t, archive)
		if g == nil {
			t.Fatalf("does not compile:\n%v", diags)
		}
		return routes(g) + lines(diags)
	})
}

// routes writes one line for each node: what its route tries, in order.
func routes(g *graph.Graph) string {
	var b strings.Builder
	line := func(name string, r *graph.Route, body graph.Body) {
		fmt.Fprintf(&b, "%s:%s", name, route(r))
		if m, ok := body.(*graph.Map); ok && m.FanIn != nil {
			fmt.Fprintf(&b, " map to %s", m.FanIn.Name)
		}
		b.WriteByte('\n')
	}
	line("__start__", &g.Start, nil)
	for _, n := range g.Nodes {
		line(n.Name, &n.Route, n.Body)
		if loop, ok := n.Body.(*graph.Loop); ok {
			for _, text := range strings.Split(strings.TrimSpace(routes(loop.Body)), "\n") {
				fmt.Fprintf(&b, "  %s\n", text)
			}
		}
	}
	return b.String()
}

func route(r *graph.Route) string {
	var b strings.Builder
	guarded := func(c *graph.Condition, to string) {
		b.WriteString(" ")
		if c != nil {
			language := "jinja"
			if c.IsLua() {
				language = "lua"
			}
			fmt.Fprintf(&b, "[%s %s]", language, c.Value)
		}
		b.WriteString(to)
	}
	for _, rule := range r.Goto {
		guarded(rule.If, "goto "+rule.To.Name())
	}
	if r.FanOut != nil {
		b.WriteString(" fan out (")
		for _, branch := range r.FanOut.Branches {
			guarded(branch.When, branch.Entry.Name)
		}
		b.WriteString(" )")
		if r.FanOut.Join != nil {
			b.WriteString(" to " + r.FanOut.Join.Name)
		}
	}
	for _, arm := range r.Arms {
		if arm.Switch == nil {
			guarded(arm.When, arm.To.Name())
			continue
		}
		guarded(arm.Switch.Condition, "{")
		for _, t := range arm.Switch.Targets {
			fmt.Fprintf(&b, "%s:%s ", t.Result, t.To.Name())
		}
		if arm.Switch.Default != nil {
			b.WriteString("*:" + arm.Switch.Default.Name())
		}
		b.WriteString("}")
	}
	if r.Default != nil {
		b.WriteString(" " + r.Default.Name())
	}
	if r.Implicit != nil {
		b.WriteString(" next " + r.Implicit.Name())
	}
	return b.String()
}
