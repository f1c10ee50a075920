package graph

import (
	"cmp"
	"errors"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

func (c *compiler) body(g *Graph, n *Node, body spec.Body, roots []string) Body {
	switch b := body.(type) {
	case *spec.ActionBody:
		b, own := c.params.claim(b, c.diags)
		if slices.Contains(own, timeoutKey) {
			n.Timeout = 0
		}
		if !slices.Contains(own, "on_unknown") {
			c.params.warnUnmarked(n.Spec, b, c.diags)
		}
		return c.action(b, roots)
	case *spec.LuaBody:
		return &Lua{Chunk: c.chunk(b.Code, roots), Output: c.output(b.Output, roots)}
	case *spec.StepsBody:
		return &Steps{Steps: c.steps(g, n, b.Steps, roots)}
	case *spec.LoopBody:
		return &Loop{
			Condition: c.condition(&b.Condition, roots), MaxIterations: b.MaxIterations, StopAtMax: b.StopAtMax,
			Body: c.graph(b.Nodes, nil, roots), Output: c.output(b.Output, roots),
		}
	case *spec.MapBody:
		return c.mapBody(g, n, b, roots)
	case *spec.SubgraphBody:
		return c.subgraph(b, roots)
	}
	return nil
}

func (c *compiler) action(b *spec.ActionBody, roots []string) *Action {
	a := &Action{Uses: b.Uses.Value, Output: c.output(b.Output, roots), result: c.params.check(b, c.diags), files: c.files(b), with: b.With}
	a.With, a.Deferred = c.with(b, roots)
	return a
}

func (c *compiler) verify(n *spec.Node, roots []string) *Verify {
	if n.Verify == nil {
		return nil
	}
	c.params.warnVerify(n.Verify.Call.Uses, c.diags)
	return &Verify{Call: c.action(n.Verify.Call, roots), If: c.condition(&n.Verify.If, roots)}
}

// steps compiles the steps of a node. A step without a retry policy uses the
// node's, so that a retry repeats only the failed step.
func (c *compiler) steps(g *Graph, n *Node, specs []*spec.Node, roots []string) []*Node {
	steps := make([]*Node, len(specs))
	for i, s := range specs {
		steps[i] = &Node{Name: s.Name, Spec: s, Index: i, Route: Route{Implicit: &Target{}}}
		c.node(g, steps[i], roots)
		if s.Retry == nil {
			steps[i].Retry = n.Retry
		}
		if s.OnError == spec.OnErrorDefault { // error_policy applies to the node with the steps
			steps[i].OnError = spec.OnErrorStop
		}
	}
	return steps
}

func (c *compiler) mapBody(g *Graph, n *Node, b *spec.MapBody, roots []string) *Map {
	inner := withRoots(roots, b.ItemVar, b.IndexVar)
	m := &Map{
		Items: c.tree(b.Items, roots).IgnoreSpace(), ItemVar: b.ItemVar, IndexVar: b.IndexVar,
		Output: c.output(b.Output, roots),
	}
	node := n.Spec
	m.Policy = resolveParallel(node.Parallel, c.wf.Config.Parallel, c.wf.Config.MaxConcurrency)
	m.Policy.MaxConcurrency = cmp.Or(b.MaxConcurrency, m.Policy.MaxConcurrency, spec.DefaultMapConcurrency)
	if b.FailFast {
		m.Policy.FailFast = true
	}
	if b.FanIn != nil {
		m.FanIn = c.join(g, *b.FanIn)
	}
	m.Each = &Node{
		Name: n.Name, Spec: node, Index: n.Index, OnError: spec.OnErrorStop, Route: Route{Implicit: &Target{}},
		Retry: resolveRetry(node.Retry, &c.wf.Errors.Retry), Timeout: node.Timeout,
	}
	m.Each.Verify = c.verify(node, inner)
	m.Each.Body = c.body(g, m.Each, b.Do, inner)
	return m
}

func (c *compiler) subgraph(b *spec.SubgraphBody, roots []string) Body {
	sub := &Subgraph{Input: c.tree(b.Input, roots), Output: c.output(b.Output, roots)}
	if b.Workflow == nil {
		return sub // already reported
	}
	sub.Graph = compileWorkflow(b.Workflow, c.env, c.params, c.diags)
	c.names.Secrets = append(c.names.Secrets, sub.Graph.Names.Secrets...)
	c.names.Env = append(c.names.Env, sub.Graph.Names.Env...)
	return sub
}

// compileLua compiles the code of all nodes together, in parallel.
func (c *compiler) compileLua() {
	var sources []script.Source
	seen := map[string]bool{}
	for body := range spec.Bodies(c.wf.Nodes) {
		if lua, ok := body.(*spec.LuaBody); ok && !seen[lua.Code.Value] {
			seen[lua.Code.Value] = true
			sources = append(sources, luaSource(lua.Code))
		}
	}
	c.env.Lua.CompileAll(sources)
}

func (c *compiler) chunk(code spec.Text, roots []string) *script.Chunk {
	chunk, err := c.env.Lua.Compile(luaSource(code))
	if err != nil {
		pos := code.Pos
		var syntax *script.SyntaxError
		if errors.As(err, &syntax) {
			pos = code.At(syntax.Line-code.Line+1, syntax.Column)
		}
		hint := ""
		if syntax != nil {
			hint = syntax.Hint
		}
		if code.Cut {
			hint = spec.CutHint
		}
		c.diags.Errorf(diagcode.LuaSyntax, pos, hint, "Lua: %s", messageOf(err))
		return nil
	}
	c.readLua(code, chunk)
	c.unknownGlobals(code, chunk, roots)
	return chunk
}

func (c *compiler) tree(t *spec.Tree, roots []string) *expr.Value {
	return c.templates(t, roots, func(_, text string) bool { return expr.IsTemplate(text) })
}

// templates compiles the templates of a tree, which isTemplate selects.
func (c *compiler) templates(t *spec.Tree, roots []string, isTemplate func(path, text string) bool) *expr.Value {
	if t == nil {
		return nil
	}
	v, problems := expr.CompileTemplates(t.Value, isTemplate, func(path string, line, column int) diag.Pos {
		return t.Places[path].At(line, column)
	})
	*c.diags = append(*c.diags, problems...)
	for _, located := range v.Templates() {
		c.readTemplate(t.Places[located.Path], located.Template, roots, false)
	}
	return v
}

func (c *compiler) output(o *spec.Output, roots []string) *Output {
	if o == nil {
		return nil
	}
	out := &Output{Key: o.Key, Derived: true}
	for _, f := range o.Fields {
		v := c.tree(f.Value, roots)
		out.Fields = append(out.Fields, OutputField{Key: f.Key, Value: v})
		out.Derived = out.Derived && derived(v)
	}
	return out
}
