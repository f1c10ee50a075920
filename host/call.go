package host

import (
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/value"
)

// CallResult is the state key under which a [Host.LoadCall] workflow stores the
// action's result.
const CallResult = "result"

// LoadCall returns a workflow that calls one action, and the input for its run.
// The parameters are passed unchanged: templates in them are not evaluated. It
// returns the errors of [Host.Load]; mistakes in the call have positions in the
// file "".
func (h *Host) LoadCall(action string, params map[string]any, o LoadOptions) (wf *Workflow, input map[string]any, err error) {
	text, input, err := callText(action, params)
	if err != nil {
		return nil, nil, err
	}
	s, diags := spec.Parse("", text, spec.Options{Overlays: o.Overlays, Config: o.Config, LookupEnv: o.LookupEnv})
	if s != nil && len(s.Nodes) == 1 {
		if call, ok := s.Nodes[0].Body.(*spec.ActionBody); ok && call.With != nil {
			call.With.Known = params // so all mistakes are reported together
			defer func() { call.With.Known = nil }()
		}
	}
	wf, err = h.compile(s, diags, o)
	return wf, input, err
}

// callText returns the text of the workflow of a call, and the input of its run.
func callText(action string, params map[string]any) (text []byte, input map[string]any, err error) {
	with := map[string]any{}
	for name := range params {
		key, err := value.Encode(name)
		if err != nil {
			return nil, nil, err
		}
		with[name] = "{{ state.params[" + string(key) + "] }}"
	}
	// JSON is YAML.
	text, err = value.Encode(map[string]any{
		"name": "call",
		"nodes": []any{map[string]any{
			"name": "call", "uses": action, "with": with, "output": CallResult,
		}},
	})
	return text, CallInput(params), err
}

// CallInput returns the input for another run of a [Host.LoadCall] workflow, with
// parameters of the same names.
func CallInput(params map[string]any) map[string]any { return map[string]any{"params": params} }
