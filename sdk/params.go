package tea

import (
	"reflect"
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
// [Manifest.CheckSchemas] refuses it. The result keeps the JSON text of params
// where nothing was added, and holds the value too, so that neither is made again.
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
			filled, added := s.Complete(completed)
			completed, changed = filled, changed || added
			if problems := s.Validate(completed); len(problems) > 0 {
				return params, refuse(action, problems)
			}
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

// acceptance says which parameters of a request a check has accepted. A handler
// may hand a changed copy of its request to another one.
type acceptance struct {
	check  *ParamCheck
	params Payload
}

func (a acceptance) is(check *ParamCheck, params Payload) bool {
	have, ok := a.params.value.(map[string]any)
	given, isObject := params.value.(map[string]any)
	return ok && isObject && a.check == check && reflect.ValueOf(have).Pointer() == reflect.ValueOf(given).Pointer()
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
