package tea

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// NewAction makes an action of a typed function. The schemas come from P and
// R (see package schema for the field tags); parameters that do not fit are
// refused with a validation_error before fn is called, whatever the tags say
// of them included, and absent ones get their default tag, in nested structs too. P must be a struct or a map with string keys.
func NewAction[P, R any](name, summary string, fn func(ctx context.Context, req *Request, params P) (R, error), options ...Option) Action {
	a := Action{Name: name, Summary: summary, Params: schema.Of[P](), Result: schema.Of[R]()}
	defaults, limits := defaultsOf(a.Params), newChecker(a.Params)
	a.Handle = func(ctx context.Context, req *Request) (*Response, error) {
		var params P
		if err := decodeParams(req, limits, defaults, &params); err != nil {
			return nil, err
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

func defaultsOf(s *schema.Schema) []byte {
	defaults := map[string]any{}
	for _, p := range propertiesOf(s) {
		if p.Schema.Default != nil {
			defaults[p.Name] = p.Schema.Default
		}
	}
	if len(defaults) == 0 {
		return nil
	}
	raw, err := json.Marshal(defaults)
	if err != nil {
		panic(fmt.Sprintf("tea: defaults: %v", err)) // they came out of JSON
	}
	return raw
}

func propertiesOf(s *schema.Schema) schema.Properties {
	if s == nil || s.Properties == nil {
		return nil
	}
	return *s.Properties
}

func decodeParams(req *Request, limits *checker, defaults []byte, into any) error {
	s := limits.schema
	raw, err := req.Params.JSON()
	if err != nil {
		return Errorf(ValidationError, "parameters of %s: %v", req.Action, err)
	}
	if len(raw) == 0 || string(raw) == "null" {
		raw = []byte("{}")
	}
	if err := missingParams(req.Action, s, raw); err != nil {
		return err
	}
	var params any
	if limits.limits || limits.inner {
		if params, err = value.Decode(raw); err != nil {
			return Errorf(ValidationError, "parameters of %s: %v", req.Action, err)
		}
	}
	if limits.inner {
		fill(s, params, 0)
		if raw, err = value.Encode(params); err != nil {
			return Errorf(ValidationError, "parameters of %s: %v", req.Action, err)
		}
	}
	if defaults != nil {
		if err := json.Unmarshal(defaults, into); err != nil {
			return Errorf(InternalError, "defaults of %s: %v", req.Action, err)
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	err = dec.Decode(into)
	if err == nil {
		err = nothingMore(dec)
	}
	if err != nil {
		return paramError(req.Action, s, raw, err)
	}
	if limits.limits {
		if at, problem := limits.check(s, params, ""); problem != "" {
			return Errorf(ValidationError, "%s: parameter %q %s", req.Action, at, problem)
		}
	}
	return nil
}

// nothingMore is the error of what stands behind a JSON value.
func nothingMore(dec *json.Decoder) error {
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("unexpected data after the JSON value at byte %d", dec.InputOffset())
	}
	return nil
}

// missingParams finds required members that are absent: Go's decoder does not.
func missingParams(action string, s *schema.Schema, raw []byte) error {
	if s == nil || len(s.Required) == 0 {
		return nil
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil {
		return nil // the decoder's own message is better
	}
	for _, name := range s.Required {
		if _, ok := given[name]; !ok {
			return Errorf(ValidationError, "%s needs the parameter %q", action, name)
		}
	}
	return nil
}

func paramError(action string, s *schema.Schema, raw []byte, err error) error {
	if given, bad := value.Decode(raw); bad == nil && s != nil {
		switch at, want, got := mistyped(s, given, ""); {
		case want != "" && at == "":
			return Errorf(ValidationError, "the parameters of %s must be %s, got %s", action, withArticle(want), got)
		case want != "":
			return Errorf(ValidationError, "%s: parameter %q must be %s, got %s", action, at, withArticle(want), got)
		}
		if at, hint := unknown(s, given, ""); at != "" {
			return Errorf(ValidationError, "%s has no parameter %q%s", action, at, hint)
		}
	}
	return Errorf(ValidationError, "parameters of %s: %v", action, err)
}

// withArticle words a JSON type for a sentence.
func withArticle(name string) string {
	switch name[0] {
	case 'a', 'i', 'o':
		return "an " + name
	}
	return "a " + name
}
