package llm

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// maxWireName is the longest tool name that servers accept.
const maxWireName = 64

// tool is an action that a model may use.
type tool struct {
	name   string // in the workflow
	action string
	wire   chat.Tool // what the model sees
	check  *shape    // the workflow's schema of the arguments; may be nil
	ask    bool      // a person approves each call
	// handOff is the agent to which the tool hands off, and isTodo reports whether it
	// writes the agent's list; see agenttools.go.
	handOff string
	isTodo  bool
	// run, if not nil, is called in place of an action, and returns what the model sees.
	run func(arguments map[string]any) (string, error)
	// params and result, if not nil, convert the arguments to the parameters of the
	// action, and its result to what the model sees.
	params func(arguments map[string]any) map[string]any
	result func(tea.Payload) ([]byte, error)
}

// toolset are the tools of one call. Action names contain dots, which the protocols
// do not allow, so a toolset keeps both names.
type toolset struct {
	tools []tool
	specs []ToolSpec // of the tools, in the same order
}

// newToolset completes the specs with the host's descriptions of the actions. A tool
// without parameters must name an existing action.
func newToolset(ctx context.Context, host tea.Host, specs []ToolSpec) (*toolset, error) {
	specs, err := expand(ctx, host, specs)
	if err != nil {
		return nil, err
	}
	s := &toolset{specs: specs}
	for i, spec := range specs {
		if spec.Name == "" {
			return nil, tea.Errorf(tea.ValidationError, "tools[%d] has neither a name nor an action", i)
		}
		if s.find(spec.Name) != nil {
			return nil, tea.Errorf(tea.ValidationError, "duplicate tool name %q; rename one of them", spec.Name)
		}
		t := tool{name: spec.Name, action: spec.Action, ask: spec.Approval == approveAsk, wire: chat.Tool{Name: s.wireName(spec.Name), Description: spec.Description}}
		if spec.Parameters != nil {
			t.wire.Parameters = spec.Parameters
		} else if err := t.describe(ctx, host); err != nil {
			return nil, err
		}
		s.tools = append(s.tools, t)
	}
	return s, nil
}

// compile compiles the parameters that the workflow defines for tools; actions check
// theirs themselves.
func (s *toolset) compile() error {
	for i, spec := range s.specs {
		if spec.Parameters == nil {
			continue
		}
		check, err := newShape(&chat.Format{Schema: spec.Parameters})
		if err != nil {
			return tea.Errorf(tea.ValidationError, "parameters of the tool %s: %s", spec.Name, tea.AsError(err).Message)
		}
		s.tools[i].check = check
	}
	return nil
}

// describe uses the host's description of the action.
func (t *tool) describe(ctx context.Context, host tea.Host) error {
	info, err := host.Describe(ctx, t.action)
	if tea.AsError(err) != nil && tea.AsError(err).Type == tea.NotFound {
		found, listErr := t.describeListed(ctx, host)
		if found {
			return nil
		}
		err = cmp.Or(listErr, err)
	}
	if err != nil {
		e := *tea.AsError(err)
		e.Message = fmt.Sprintf("tool %s: %s", t.name, e.Message)
		return &e
	}
	t.wire.Description = cmp.Or(t.wire.Description, info.Summary)
	parameters := map[string]any{}
	if info.Params != nil {
		v, err := value.From(info.Params)
		if err != nil {
			return tea.Errorf(tea.InternalError, "schema of %s: %w", t.action, err)
		}
		if object, ok := v.(map[string]any); ok {
			parameters = object
			delete(parameters, "anyOf") // servers refuse it here; the action checks its parameters itself
		}
	}
	if parameters["type"] == nil {
		parameters["type"] = "object"
	}
	if parameters["properties"] == nil {
		parameters["properties"] = map[string]any{}
	}
	t.wire.Parameters = parameters
	return nil
}

// wireName returns a unique name that servers accept.
func (s *toolset) wireName(name string) string {
	base := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	base = base[:min(len(base), maxWireName)]
	unique := base
	for n := 2; s.taken(unique); n++ {
		suffix := fmt.Sprintf("_%d", n)
		unique = base[:min(len(base), maxWireName-len(suffix))] + suffix
	}
	return unique
}

func (s *toolset) taken(wire string) bool {
	for _, t := range s.tools {
		if t.wire.Name == wire {
			return true
		}
	}
	return false
}

// find returns the tool with a name in the workflow or on the wire; nil if there is
// none. The name on the wire takes precedence, because models use it.
func (s *toolset) find(name string) *tool {
	for i := range s.tools {
		if s.tools[i].wire.Name == name {
			return &s.tools[i]
		}
	}
	for i := range s.tools {
		if s.tools[i].name == name {
			return &s.tools[i]
		}
	}
	return nil
}

// offer adds the tools to a request and converts the names in it to their wire
// form.
func (s *toolset) offer(req *chat.Request) {
	for _, t := range s.tools {
		req.Tools = append(req.Tools, t.wire)
	}
	if t := s.named(req.ToolChoice); t != nil {
		req.ToolChoice = t.wire.Name
	}
	for i, m := range req.Messages {
		calls := append([]chat.ToolCall(nil), m.ToolCalls...)
		for j := range calls {
			if t := s.named(calls[j].Name); t != nil {
				calls[j].Name = t.wire.Name
			}
		}
		req.Messages[i].ToolCalls = calls
	}
}

// named returns the tool with a name in the workflow; nil if there is none.
func (s *toolset) named(name string) *tool {
	for i := range s.tools {
		if s.tools[i].name == name {
			return &s.tools[i]
		}
	}
	return nil
}

// fromWire converts names from their wire form to the workflow's, in place.
func (s *toolset) fromWire(calls []chat.ToolCall) {
	for i := range calls {
		if t := s.find(calls[i].Name); t != nil {
			calls[i].Name = t.name
		}
	}
}

// unknown returns the result for a call of an unknown tool.
func (s *toolset) unknown(name string) string {
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.wire.Name
	}
	return fmt.Sprintf("there is no tool %q; the tools are: %s%s", name, strings.Join(names, ", "), diag.Ending(name, names))
}
