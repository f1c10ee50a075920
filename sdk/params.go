package tea

import (
	"sync"

	"github.com/the-edge-agent/tea/sdk/jsonschema"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// ParamCheck holds the parameters of one action to its schema. It compiles the
// schema when it is first used, and is safe for concurrent use.
type ParamCheck struct {
	compiled func() (*jsonschema.Schema, error)
}

// NewParamCheck makes the check of a schema; nil allows anything.
func NewParamCheck(s *schema.Schema) *ParamCheck {
	if s == nil {
		return &ParamCheck{}
	}
	return &ParamCheck{sync.OnceValues(func() (*jsonschema.Schema, error) { return jsonschema.Compile(s) })}
}

// Accept completes parameters (see [jsonschema.Schema.Complete]) and checks
// them. The error is a validation_error that names every problem; its details
// list them under "errors". A schema that cannot be compiled checks nothing:
// [Manifest.CheckSchemas] refuses it. params must be in the value model and is not
// changed; the result may share containers with it.
func (c *ParamCheck) Accept(action string, params any) (map[string]any, error) {
	if params == nil {
		params = map[string]any{}
	}
	if c.compiled != nil {
		if s, err := c.compiled(); err == nil {
			params = s.Complete(params)
			if problems := s.Validate(params); len(problems) > 0 {
				return nil, refuse(action, problems)
			}
		}
	}
	object, ok := params.(map[string]any)
	if !ok {
		return nil, Errorf(ValidationError, "the parameters of %s must be an object", action)
	}
	return object, nil
}

// AcceptPayload is [ParamCheck.Accept] for a payload.
func (c *ParamCheck) AcceptPayload(action string, params Payload) (Payload, error) {
	given, err := params.Shared()
	if err != nil {
		return params, Errorf(ValidationError, "parameters of %s: %w", action, err)
	}
	accepted, err := c.Accept(action, given)
	return ValuePayload(accepted), err
}

// refuse words what is wrong with the parameters of an action.
func refuse(action string, problems []jsonschema.Problem) error {
	e := Errorf(ValidationError, "%s%s", action, jsonschema.Describe(problems, "parameter"))
	list := make([]any, len(problems))
	for i, p := range problems {
		list[i] = map[string]any{"path": p.Path, "message": p.Message}
	}
	e.Details = map[string]any{"errors": list}
	return e
}
