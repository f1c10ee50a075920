package graph

import (
	"context"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/spec"
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

type triggerTemplates struct{ input, key *expr.Value }

// serveRoots are the roots of the templates of triggers.
var serveRoots = []string{"event", "variables", "env"}

// CompileServe compiles the serve section of a workflow.
func CompileServe(wf *spec.Workflow, s *spec.Serve) (*Serve, diag.List) {
	var diags diag.List
	c := &compiler{wf: wf, diags: &diags}
	out := &Serve{Serve: s, variables: wf.Variables, key: c.eventTemplates(s.Key)}
	for i := range s.Triggers {
		c.requiredInput(&s.Triggers[i])
		out.triggers = append(out.triggers, triggerTemplates{c.eventTemplates(s.Triggers[i].Input), c.eventTemplates(s.Triggers[i].Key)})
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

// eventTemplates compiles templates over an event.
func (c *compiler) eventTemplates(t *spec.Tree) *expr.Value {
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
			if !slices.Contains(serveRoots, ref.Root) {
				c.diags.Errorf(diagcode.UnknownRoot, pos, "a trigger has {{ event }}, {{ variables.NAME }} and {{ env.NAME }}", "the templates of a trigger have no name %q", ref.Root)
			} else if ref.Root == "variables" {
				c.readName(pos, ref.Root, ref.Path)
			}
		}
	}
	return v
}

// eventScope is the scope of the templates of a trigger.
type eventScope struct{ event, variables, env map[string]any }

func (s eventScope) Lookup(name string) (any, bool) {
	switch name {
	case "event":
		return s.event, true
	case "variables":
		return s.variables, true
	case "env":
		return s.env, true
	}
	return nil, false
}

// Input returns the input for an event of a trigger; ok is false if the trigger
// has no input mapping.
func (s *Serve) Input(ctx context.Context, trigger int, event, env map[string]any) (input map[string]any, ok bool, err error) {
	mapping := s.triggers[trigger].input
	if mapping == nil {
		return nil, false, nil
	}
	v, err := mapping.Eval(ctx, eventScope{event, s.variables, env})
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
	return key.Eval(ctx, eventScope{event, s.variables, env})
}
