package tea

import (
	"context"
	"reflect"

	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// NewAction makes an action of a typed function. The schemas come from P and
// R (see package schema for the field tags); parameters that do not fit are
// refused with a validation_error before fn is called, and absent ones get
// their default tag, in nested structs too. A null counts as absent unless the
// schema allows it. P must be a struct or a map with string keys.
func NewAction[P, R any](name, summary string, fn func(ctx context.Context, req *Request, params P) (R, error), options ...Option) Action {
	a := Action{Name: name, Summary: summary, Params: schema.Of[P](), Result: schema.Of[R]()}
	check := NewParamCheck(a.Params)
	a.check = check
	a.Handle = func(ctx context.Context, req *Request) (*Response, error) {
		given := req.Params
		if !req.accepted.is(check, given) {
			var err error
			if given, err = check.Accept(req.Action, given); err != nil {
				return nil, err
			}
		}
		var params P
		if err := value.Into(given.value, &params); err != nil {
			return nil, Errorf(ValidationError, "%s: parameter %w", req.Action, err)
		}
		result, err := fn(ctx, req, params)
		if failed(err) {
			return nil, err
		}
		return &Response{Result: ValuePayload(result)}, nil
	}
	for _, option := range options {
		option(&a)
	}
	return a
}

// NewMethod makes an action of a method of the value that the bundle's Open
// returned: tea.NewMethod("llm.call", "Asks a model.", (*Client).Call).
func NewMethod[I, P, R any](name, summary string, method func(instance I, ctx context.Context, req *Request, params P) (R, error), options ...Option) Action {
	return NewAction(name, summary, func(ctx context.Context, req *Request, params P) (R, error) {
		instance, ok := req.Instance.(I)
		if !ok {
			var none R
			return none, Errorf(InternalError, "%s needs an instance of %s; does the bundle's Open return one?", name, reflect.TypeFor[I]())
		}
		return method(instance, ctx, req, params)
	}, options...)
}
