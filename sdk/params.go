package tea

import (
	"reflect"
	"sync"

	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// ParamCheck checks the parameters of one action. It compiles the schema on first
// use, and is safe for concurrent use.
type ParamCheck struct {
	compiled func() (*jsonschema.Schema, error)
}

// NewParamCheck returns the check for a schema; nil allows anything.
func NewParamCheck(s *schema.Schema) *ParamCheck {
	if s == nil {
		return &ParamCheck{}
	}
	return &ParamCheck{sync.OnceValues(func() (*jsonschema.Schema, error) { return jsonschema.Compile(s) })}
}

// Accept completes parameters (see [jsonschema.Schema.Complete]) and checks them.
// The error is a validation_error that names every problem; its details list them
// under "errors". Nothing is checked if the schema is not valid, which
// [Manifest.CheckSchemas] reports. The result has the value, and the JSON text of
// params if nothing was added, so that neither is computed again.
func (c *ParamCheck) Accept(action string, params Payload) (Payload, error) {
	given, err := params.Shared()
	if err != nil {
		return params, Errorf(ValidationError, "parameters of %s: %w", action, err)
	}
	completed, changed := given, given == nil
	if changed {
		completed = map[string]any{}
	}
	if c.compiled != nil {
		if s, err := c.compiled(); err == nil {
			filled, added, problems := s.Fit(completed, nil)
			if len(problems) > 0 {
				return params, refuse(action, problems)
			}
			completed, changed = filled, changed || added
		}
	}
	if _, ok := completed.(map[string]any); !ok {
		return params, Errorf(ValidationError, "the parameters of %s must be an object", action)
	}
	if changed {
		return ValuePayload(completed), nil
	}
	return Payload{raw: params.raw, value: completed}, nil
}

// acceptance records the parameters of a request that a check has accepted. A
// handler can pass a changed copy of its request to another handler.
type acceptance struct {
	check  *ParamCheck
	params Payload
}

func (a acceptance) is(check *ParamCheck, params Payload) bool {
	have, ok := a.params.value.(map[string]any)
	given, isObject := params.value.(map[string]any)
	return ok && isObject && a.check == check && reflect.ValueOf(have).Pointer() == reflect.ValueOf(given).Pointer()
}

// refuse returns the error for parameters that do not match.
func refuse(action string, problems []jsonschema.Problem) error {
	e := Errorf(ValidationError, "%s%s", action, jsonschema.Describe(problems, "parameter"))
	list := make([]any, len(problems))
	for i, p := range problems {
		list[i] = map[string]any{"path": p.Path, "message": p.Message}
	}
	e.Details = map[string]any{"errors": list}
	return e
}
