package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// program is a grader that the host runs, as a workflow of one node.
type program struct {
	node     map[string]any
	settings map[string]any
	// input is merged into the evidence.
	input map[string]any
	wf    *host.Workflow
}

// load loads the workflow. Relative paths in the settings start at the directory of name. The
// caller closes the workflow.
func (p *program) load(h *host.Host, dir string) error {
	p.node["name"], p.node["output"] = "grade", host.CallResult
	text, err := value.Encode(map[string]any{"settings": p.settings, "nodes": []any{p.node}})
	if err != nil {
		return err
	}
	p.wf, err = h.Parse(filepath.Join(dir, "grader"), text, host.LoadOptions{})
	var diags host.Diagnostics
	if errors.As(err, &diags) && len(diags) > 0 { // its position is not in the file
		d := diags[0]
		return fmt.Errorf("%s (%s)", d.Message, d.Code)
	}
	return err
}

// run returns the result of the program.
func (p *program) run(ctx context.Context, o host.RunOptions, input map[string]any) (any, flow.Usage, error) {
	o.Input = value.Merge(input, p.input)
	res, err := p.wf.Run(ctx, o)
	switch {
	case err != nil:
		return nil, flow.Usage{}, err
	case res.Status != flow.Done:
		var failure *tea.Error // without a position in the workflow that nobody has written
		if errors.As(res.Err, &failure) {
			return nil, res.Usage, failure
		}
		return nil, res.Usage, cmp.Or(res.Err, fmt.Errorf("the grader is %s", res.Status))
	}
	return res.State[host.CallResult], res.Usage, nil
}

// roots returns what programs read.
func (e *evidence) roots() map[string]any {
	calls := make([]any, len(e.run.Calls))
	for i, c := range e.run.Calls {
		calls[i] = map[string]any{"name": c.Name, "arguments": c.Arguments}
	}
	u := e.run.Usage
	return map[string]any{
		"input": toAny(e.c.Input), "expected": e.expected, "output": e.output, "state": toAny(e.run.State), "tools": calls,
		"usage": map[string]any{"steps": int64(u.Steps), "tokens": u.Tokens, "usd": u.USD, "seconds": e.run.Seconds},
	}
}

// toAny returns an object; {} if it is nil.
func toAny(object map[string]any) any {
	if object == nil {
		return map[string]any{}
	}
	return object
}

// decodeJMESPath decodes an expression that is true for a good result.
func decodeJMESPath(_ *File, g *grader, n *yaml.Node) error {
	g.program = &program{
		node:  map[string]any{"uses": "json.transform", "with": map[string]any{"data": "{{ state.evidence }}", "expression": "{{ state.expression }}"}},
		input: map[string]any{"expression": n.Value},
	}
	return nil
}

// decodeLua decodes code that returns true for a good result, or {pass = BOOLEAN, reason = TEXT}.
func decodeLua(_ *File, g *grader, n *yaml.Node) error {
	g.program = &program{node: map[string]any{"lua": n.Value}}
	return nil
}

// prepare loads the program of the grader, if it has one.
func (g *grader) prepare(ctx context.Context, h *host.Host, dir string, o host.RunOptions) error {
	if g.program == nil {
		return nil
	}
	if err := g.program.load(h, dir); err != nil {
		return fmt.Errorf("%s: %s: %w", g.pos, g.kind, err)
	}
	switch g.kind {
	case "jmespath":
		_, _, err := g.program.run(ctx, o, map[string]any{"evidence": nil})
		var failure *tea.Error
		if errors.As(err, &failure) && failure.Details["offset"] != nil { // a syntax error
			return fmt.Errorf("%s: %w", g.pos, failure)
		}
		g.check = func(ctx context.Context, e *evidence) (verdict, error) {
			v, _, err := g.program.run(ctx, o, map[string]any{"evidence": e.roots()})
			object, _ := v.(map[string]any)
			return answer(value.Truthy(object["result"]), err)
		}
	case "lua":
		g.check = func(ctx context.Context, e *evidence) (verdict, error) {
			v, _, err := g.program.run(ctx, o, e.roots())
			return answer(v, err)
		}
	}
	return nil
}

// answer reads the answer of a program.
func answer(v any, err error) (verdict, error) {
	if err != nil {
		return verdict{}, err
	}
	switch v := v.(type) {
	case bool:
		return verdict{Pass: v}, nil
	case map[string]any:
		if pass, ok := v["pass"].(bool); ok {
			reason, _ := v["reason"].(string)
			return verdict{pass, reason}, nil
		}
	}
	return verdict{}, fmt.Errorf("expected true, false or {pass, reason}, got %s", value.Brief(v))
}
