package graph

import (
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/host/internal/state"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Env is the environment of [Compile].
type Env struct {
	// Lua compiles chunks.
	Lua *script.Runtime
	// Actions are the available actions; nil skips the checks of actions and
	// their parameters.
	Actions Actions
	// Modules are the modules that Lua code can require, by namespace.
	Modules map[string]*script.Module
	// Broken are the namespaces of modules that cannot be loaded, which is
	// already reported: their actions are not reported again.
	Broken []string
	// Settings are the top-level keys of settings that have a reader; nil skips
	// the check for others.
	Settings []string
	// Unread are the bundles without a stored manifest. Actions that are not in
	// Actions may be theirs, and so may settings.
	Unread []string
	// Refused are the bundles that were found and cannot be used.
	Refused []string
	// Dynamic are the bundles whose actions depend on the settings and are not
	// described in a file.
	Dynamic []string
}

// Actions is the part of the catalog that [Compile] uses.
type Actions interface {
	// Describe returns an action by the name that a workflow uses.
	Describe(name string) (tea.ActionInfo, bool)
	// Names returns every name, for hints.
	Names() []string
}

// Compile compiles a workflow. It reports all mistakes, with warnings; the
// graph is nil if one of them is an error. The graph shares wf, which must not
// change.
func Compile(wf *spec.Workflow, env Env) (*Graph, diag.List) {
	var diags diag.List
	g := compileWorkflow(wf, env, newParamChecker(env), &diags)
	diags.Sort()
	diags = slices.Compact(diags) // a subgraph can be used twice
	if diags.HasErrors() {
		return nil, diags
	}
	return g, diags
}

// compiler compiles one workflow file.
type compiler struct {
	wf     *spec.Workflow
	env    Env
	diags  *diag.List
	params *paramChecker
	schema *state.Schema
	reads  []read
	// settings has the top-level keys of settings that templates read; "" stands
	// for all keys.
	settings map[string]bool
	// compiled are the settings for templates and conditions.
	compiled *Settings
	names    Names
}

func compileWorkflow(wf *spec.Workflow, env Env, params *paramChecker, diags *diag.List) *Graph {
	c := &compiler{wf: wf, env: env, diags: diags, params: params, schema: state.NewSchema(wf.Schema), settings: map[string]bool{}}
	c.compiled = c.compileSettings()
	c.compileLua()
	g := c.graph(wf.Nodes, wf.Edges, nil)
	g.reads, g.Names = c.reads, c.names
	c.unknownNodes(g)
	c.interrupts(g)
	c.parallelWrites(g)
	c.unknownRoots(g)
	c.unreadSettings()
	return g
}

// graph compiles one list of nodes. roots are additional template roots, such
// as a map's item.
func (c *compiler) graph(nodes []*spec.Node, edges []*spec.Edge, roots []string) *Graph {
	g := &Graph{Workflow: c.wf, Modules: c.env.Modules, Schema: c.schema, Settings: c.compiled, byName: make(map[string]*Node, len(nodes))}
	for i, s := range nodes {
		n := &Node{Name: s.Name, Spec: s, Index: i}
		g.Nodes = append(g.Nodes, n)
		if _, twice := g.byName[s.Name]; !twice {
			g.byName[s.Name] = n
		}
	}
	for _, n := range g.Nodes {
		c.node(g, n, roots)
	}
	c.routes(g, edges, roots)
	c.joins(g)
	mapJoins(g)
	c.readers(g)
	return g
}

func (c *compiler) node(g *Graph, n *Node, roots []string) {
	s := n.Spec
	n.If = c.condition(s.If, roots)
	n.Timeout = s.Timeout
	n.Retry = resolveRetry(s.Retry, &c.wf.Errors.Retry)
	n.OnError = s.OnError
	if n.OnError == spec.OnErrorDefault {
		n.OnError = c.wf.Errors.OnFailure
	}
	if n.OnError == spec.OnErrorDefault {
		n.OnError = spec.OnErrorStop
	}
	n.InterruptBefore, n.InterruptAfter = s.InterruptBefore, s.InterruptAfter
	n.Body = c.body(g, n, s.Body, roots)
	if _, isMap := s.Body.(*spec.MapBody); !isMap {
		n.Verify = c.verify(s, roots)
	}
	if s.Fallback != nil {
		n.Fallback = c.fallback(g, n, *s.Fallback)
	}
}

func (c *compiler) fallback(g *Graph, n *Node, name spec.Text) *Node {
	if name.Value == spec.End {
		c.diags.Errorf(diagcode.FallbackProblem, name.Pos, "name a node, or write on_error: continue and goto: "+spec.End, "%s cannot be the fallback of %q", spec.End, n.Name)
		return nil
	}
	fallback := c.lookup(g, name).Node
	if fallback == n {
		c.diags.Errorf(diagcode.FallbackProblem, name.Pos, "name another node", "node %q is its own fallback", n.Name)
	}
	return fallback
}

// lookup resolves a target's name; it reports an unknown one and returns the
// end.
func (c *compiler) lookup(g *Graph, name spec.Text) Target {
	if name.Value == spec.End || name.Pos == (diag.Pos{}) { // not there: already reported
		return Target{}
	}
	if n := g.byName[name.Value]; n != nil {
		return Target{Node: n}
	}
	if name.Value == spec.Start {
		c.diags.Errorf(diagcode.UnknownTarget, name.Pos, "name the node to go to", "START cannot be a target: a run begins there")
		return Target{}
	}
	c.diags.Errorf(diagcode.UnknownTarget, name.Pos, nodeHint(g, name.Value, spec.End), "unknown node %q", name.Value)
	return Target{}
}

// nodeHint returns the hint for an unknown node name.
func nodeHint(g *Graph, name string, others ...string) string {
	names := slices.Clone(others)
	for _, n := range g.Nodes {
		names = append(names, n.Name)
	}
	if near := diag.Suggest(name, names); near != "" {
		return near
	}
	const most = 8
	if names = names[len(others):]; len(names) > most {
		names = append(names[:most:most], "...")
	}
	return "the nodes here are: " + strings.Join(names, ", ")
}

func (c *compiler) interrupts(g *Graph) {
	mark := func(names []spec.Text, set func(*Node)) {
		for _, name := range names {
			n := g.byName[name.Value]
			if n == nil {
				c.diags.Errorf(diagcode.UnknownInterrupt, name.Pos, nodeHint(g, name.Value), "the interrupt names an unknown node %q", name.Value)
				continue
			}
			set(n)
		}
	}
	mark(c.wf.Config.InterruptBefore, func(n *Node) { n.InterruptBefore = true })
	mark(c.wf.Config.InterruptAfter, func(n *Node) { n.InterruptAfter = true })
}
