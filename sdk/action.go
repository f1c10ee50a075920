package tea

import (
	"context"
	"reflect"

	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Handler does the work of an action. It is called concurrently. It must return
// soon after ctx is done; ctx has the deadline of the call. The caller owns the
// response. The error should be an [*Error]; any other error becomes an error of
// type internal_error.
type Handler func(ctx context.Context, req *Request) (*Response, error)

// Action is a function that workflows call by its name. It is a value: copy it
// freely. The zero value is not usable; Name and Handle are required.
type Action struct {
	// Name is "namespace.verb", such as "llm.call".
	Name string
	// Summary is one sentence for the output of `tea actions`.
	Summary string
	// Params and Result describe the JSON objects of parameters and result; nil
	// allows anything. A workflow is checked against Params before it runs, and
	// each call before Handle.
	Params, Result *schema.Schema
	// Streaming means that the action emits tokens or progress while it works.
	Streaming bool
	// Idempotent means that a call can be repeated after a crash, even if the
	// first attempt has completed its work.
	Idempotent bool
	// Once means that the effect of a call must happen at most once: the host does not
	// repeat a call that may have had its effect.
	Once bool
	// Reads means that the action changes nothing outside the run, except through the
	// actions that it calls. A dry run makes its calls.
	Reads bool
	// DryRun means that the action leaves out its effect in a call with
	// [Call].DryRun. A dry run shows the calls of other actions instead of making them.
	DryRun bool
	// Replay tells an engine that replays runs how to treat an action of the host.
	Replay Replay
	// Handle does the work. It is called concurrently.
	Handle Handler

	check *ParamCheck // of Params; nil until an instance makes one
}

// Info returns the description of the action.
func (a Action) Info() ActionInfo {
	return ActionInfo{Name: a.Name, Summary: a.Summary, Params: a.Params, Result: a.Result, Streaming: a.Streaming, Idempotent: a.Idempotent, Once: a.Once, Reads: a.Reads, DryRun: a.DryRun, Replay: a.Replay}
}

// ActionInfo describes an action to its callers. It is shared and must not be
// changed.
type ActionInfo struct {
	Name       string         `json:"name"`
	Summary    string         `json:"summary,omitempty"`
	Params     *schema.Schema `json:"params,omitempty"`
	Result     *schema.Schema `json:"result,omitempty"`
	Streaming  bool           `json:"streaming,omitempty"`
	Idempotent bool           `json:"idempotent,omitempty"`
	Once       bool           `json:"once,omitempty"`
	Reads      bool           `json:"reads,omitempty"`
	DryRun     bool           `json:"dry_run,omitempty"`
	Replay     Replay         `json:"replay,omitzero"`
}

// Replay is what an engine does with a call when it replays a run. The zero value makes the call outside of the replay
// and stores its result.
type Replay struct {
	// Repeat makes the call again: it has no effect outside its run, and its result
	// depends only on its parameters and the run.
	Repeat bool `json:"repeat,omitempty"`
	// Unless are parameters with which a call is not repeated, such as the path of a file.
	Unless []string `json:"unless,omitempty"`
	// Local makes the call in the process of the run, and stores its result.
	Local bool `json:"local,omitempty"`
}

// Option changes an action that [NewAction] or [NewMethod] returns.
type Option func(*Action)

// Streaming marks an action that emits tokens or progress.
func Streaming() Option { return func(a *Action) { a.Streaming = true } }

// Idempotent marks an action that can be repeated after a crash.
func Idempotent() Option { return func(a *Action) { a.Idempotent = true } }

// Once marks an action whose effect must happen at most once, such as a write to a
// device or a message to a person. Its errors should say if nothing was sent; see
// [Error.NotSent].
func Once() Option { return func(a *Action) { a.Once = true } }

// Reads marks an action that changes nothing outside the run, except through the actions
// that it calls.
func Reads() Option { return func(a *Action) { a.Reads = true } }

// DryRun marks an action that leaves out its effect in a call with [Call].DryRun.
func DryRun() Option { return func(a *Action) { a.DryRun = true } }

// WritesFiles marks an action that writes files below the file root. member is the member
// of its result that has their path, or a list of paths. The host emits an event for each
// file, and the page and the report of a run list them.
func WritesFiles(member string) Option {
	return func(a *Action) { a.Result.Extra = map[string]any{Files: member} }
}

// Repeated marks an action that an engine calls again when it replays a run, unless the
// call has one of the parameters; see [Replay]. It only reads.
func Repeated(unless ...string) Option {
	return func(a *Action) { a.Reads, a.Replay = true, Replay{Repeat: true, Unless: unless} }
}

// NewAction returns an action that calls a typed function. The schemas come from
// P and R (see package schema for the field tags). Parameters that do not match
// are refused with a validation_error before fn is called; absent ones get the
// value of their default tag, also in nested structs. A null counts as absent
// unless the schema allows it. P must be a struct or a map with string keys.
// NewAction panics if a tag of P or R is malformed.
func NewAction[P, R any](name, summary string, fn func(ctx context.Context, req *Request, params P) (R, error), options ...Option) Action {
	return newAction(name, summary, reflect.TypeFor[P](), reflect.TypeFor[R](), func(ctx context.Context, req *Request, given any) (any, error) {
		var params P
		if err := intoParams(req, given, &params); err != nil {
			return nil, err
		}
		return fn(ctx, req, params)
	}, options)
}

// NewMethod returns an action that calls a method of the instance that the
// bundle's Open returned: tea.NewMethod("llm.call", "Asks a model.",
// (*Client).Call).
func NewMethod[I, P, R any](name, summary string, method func(instance I, ctx context.Context, req *Request, params P) (R, error), options ...Option) Action {
	return newAction(name, summary, reflect.TypeFor[P](), reflect.TypeFor[R](), func(ctx context.Context, req *Request, given any) (any, error) {
		var params P
		if err := intoParams(req, given, &params); err != nil {
			return nil, err
		}
		instance, ok := req.Instance.(I)
		if !ok {
			return nil, Errorf(InternalError, "%s needs an instance of %s; does the bundle's Open return one?", name, reflect.TypeFor[I]())
		}
		return method(instance, ctx, req, params)
	}, options)
}

// newAction is what NewAction and NewMethod share. It has no type parameters because the
// compiler copies a function with type parameters for each action.
func newAction(name, summary string, params, result reflect.Type, call func(ctx context.Context, req *Request, given any) (any, error), options []Option) Action {
	a := Action{Name: name, Summary: summary, Params: schema.OfType(params), Result: schema.OfType(result)}
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
		result, err := call(ctx, req, given.value)
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

func intoParams(req *Request, given, params any) error {
	if err := value.Into(given, params); err != nil {
		return Errorf(ValidationError, "%s: parameter %w", req.Action, err)
	}
	return nil
}
