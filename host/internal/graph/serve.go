package graph

import (
	"context"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Serve has the compiled templates of a serve section. It is immutable and safe
// for concurrent use.
type Serve struct {
	*spec.Serve
	variables map[string]any
	key       *expr.Value
	triggers  []triggerTemplates
}

type triggerTemplates struct {
	input, key *expr.Value
	// The rest is set for poll and stream.
	with        *expr.Value
	when, reset *Condition
}

// serveRoots are the roots of the templates of triggers.
var serveRoots = []string{"event", "variables", "env"}

// CompileServe compiles the serve section of a workflow.
func CompileServe(wf *spec.Workflow, s *spec.Serve, env Env) (*Serve, diag.List) {
	var diags diag.List
	c := &compiler{wf: wf, env: env, diags: &diags, params: newParamChecker(env), settings: map[string]bool{}}
	out := &Serve{Serve: s, variables: wf.Variables, key: c.eventTemplates(s.Key, serveRoots)}
	for i := range s.Triggers {
		t := &s.Triggers[i]
		c.requiredInput(t)
		compiled := triggerTemplates{input: c.eventTemplates(t.Input, serveRoots), key: c.eventTemplates(t.Key, serveRoots)}
		if t.Values != nil {
			c.watchedCall(t)
			compiled.with = c.eventTemplates(t.Values.Call.With, serveRoots[1:])
			compiled.when, compiled.reset = c.valueCondition(t.Values.When), c.valueCondition(t.Values.Reset)
		}
		out.triggers = append(out.triggers, compiled)
	}
	return out, diags
}

// requiredInput reports keys that the state schema requires and a trigger never
// passes. A webhook or a message without a mapping can pass any.
func (c *compiler) requiredInput(t *spec.Trigger) {
	given := map[string]any{"event": t}
	if t.Input != nil {
		given, _ = t.Input.Value.(map[string]any)
	} else if t.Kind == spec.TriggerWebhook || t.Kind == spec.TriggerMQTT {
		return
	}
	for _, k := range c.wf.Schema {
		if k.Required && given[k.Name] == nil && k.Default == nil && c.wf.InitialState[k.Name] == nil {
			c.diags.Errorf(diagcode.MissingKey, t.Pos, "add it to the input of the trigger, or give it a default", "the trigger %q starts no run: state_schema requires %q, which its input does not have", t.Name, k.Name)
		}
	}
}

// eventTemplates compiles the templates of a trigger.
func (c *compiler) eventTemplates(t *spec.Tree, roots []string) *expr.Value {
	if t == nil {
		return nil
	}
	v, problems := expr.CompileTemplates(t.Value, func(_, text string) bool { return expr.IsTemplate(text) }, func(path string, line, column int) diag.Pos {
		return t.Places[path].At(line, column)
	})
	*c.diags = append(*c.diags, problems...)
	for _, located := range v.Templates() {
		for _, ref := range located.Template.Roots() {
			pos := t.Places[located.Path].At(ref.Line, ref.Column)
			if !slices.Contains(roots, ref.Root) {
				c.diags.Errorf(diagcode.UnknownRoot, pos, "there are: "+strings.Join(roots, ", "), "a template of a trigger has no name %q here", ref.Root)
			} else if ref.Root == "variables" {
				c.readName(pos, ref.Root, ref.Path)
			}
		}
	}
	return v
}

// watchedCall checks the call of a trigger that watches values.
func (c *compiler) watchedCall(t *spec.Trigger) {
	b := t.Values.Call
	c.params.check(b, c.diags)
	if c.env.Actions == nil || b.Uses.Pos == (diag.Pos{}) {
		return
	}
	switch info, known := c.env.Actions.Describe(b.Uses.Value); {
	case known && (info.Once || info.DryRun && !info.Reads):
		c.diags.Errorf(diagcode.ValueNotAllowed, b.Uses.Pos, "name an action that reads, and call this one in a node", "%s: %s has an effect", t.Kind, b.Uses.Value)
	case known && !info.Streaming && t.Kind == spec.TriggerStream:
		c.diags.Errorf(diagcode.ValueNotAllowed, b.Uses.Pos, "write poll: with every:, or name an action such as mqtt.watch", "stream: %s passes on no values", b.Uses.Value)
	}
}

// valueRoots are the names in the conditions of a trigger that watches values.
var valueRoots = []string{"result", previousRoot, "variables", "env"}

const previousRoot = "previous"

// valueCondition compiles a condition on a value.
func (c *compiler) valueCondition(text *spec.Text) *Condition {
	c.reads = nil
	cond := c.condition(text, []string{previousRoot})
	if cond == nil {
		return nil
	}
	unknown := slices.Clone(cond.roots)
	for _, r := range c.reads {
		unknown = append(unknown, r.key)
	}
	if cond.template != nil {
		for _, ref := range cond.template.Roots() {
			unknown = append(unknown, ref.Root)
		}
	}
	for _, name := range unknown {
		if !slices.Contains(valueRoots, name) {
			c.diags.Errorf(diagcode.UnknownRoot, text.Pos, "there are: "+strings.Join(valueRoots, ", "), "a condition of a trigger has no name %q", name)
			break
		}
	}
	return cond
}

// With returns the parameters of the call of a trigger that watches values.
func (s *Serve) With(ctx context.Context, trigger int, env map[string]any) (any, error) {
	with := s.triggers[trigger].with
	if with == nil {
		return map[string]any{}, nil
	}
	return with.Eval(ctx, script.Values{"variables": s.variables, "env": env})
}

// Condition returns the condition when or reset of a trigger; nil if it has none.
func (s *Serve) Condition(trigger int, reset bool) *Condition {
	if reset {
		return s.triggers[trigger].reset
	}
	return s.triggers[trigger].when
}

// ReadsPrevious reports whether the condition needs the value before.
func (c *Condition) ReadsPrevious() bool {
	if c.chunk != nil {
		return c.chunk.Reads(previousRoot)
	}
	return slices.ContainsFunc(c.template.Roots(), func(ref expr.Ref) bool { return ref.Root == previousRoot })
}

// Holds evaluates a condition on a value.
func (s *Serve) Holds(ctx context.Context, c *Condition, result, previous any, env map[string]any) (bool, error) {
	known := script.Values{"result": result, previousRoot: previous, "variables": s.variables, "env": env}
	v, err := c.Eval(ctx, known, script.Env{Globals: known})
	return value.Truthy(v), err
}

// Input returns the input for an event of a trigger; ok is false if the trigger
// has no input mapping.
func (s *Serve) Input(ctx context.Context, trigger int, event, env map[string]any) (input map[string]any, ok bool, err error) {
	mapping := s.triggers[trigger].input
	if mapping == nil {
		return nil, false, nil
	}
	v, err := mapping.Eval(ctx, script.Values{"event": event, "variables": s.variables, "env": env})
	input, _ = v.(map[string]any)
	return input, true, err
}

// Key returns the deduplication key of an event: a text, or nil for none. trigger
// is -1 for an event without a trigger.
func (s *Serve) Key(ctx context.Context, trigger int, event, env map[string]any) (any, error) {
	key := s.key
	if trigger >= 0 && s.triggers[trigger].key != nil {
		key = s.triggers[trigger].key
	}
	if key == nil {
		return nil, nil
	}
	return key.Eval(ctx, script.Values{"event": event, "variables": s.variables, "env": env})
}
