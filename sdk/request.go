package tea

import (
	"context"
	"log/slog"
)

// Request is one call of an action. It is valid until the handler returns, and
// its fields must not be changed. Its methods are safe for concurrent use.
type Request struct {
	// Action is the name under which the action was called.
	Action string
	// Params is the JSON object of parameters, with templates resolved,
	// defaults filled in and checked against the schema.
	Params Payload
	// Instance is the value that the bundle's Open returned for the settings of
	// the workflow.
	Instance any
	// Call identifies the caller.
	Call
	// Host offers other actions, logs, tokens and notes. It is never nil in a
	// handler.
	Host Host

	accepted acceptance
	// ctx is the handler's context.
	ctx hostContext
}

// Usage reports the usage of one request to a model: the amounts of that
// request alone, once after each request, including failed and repeated ones.
// An error of type budget_exceeded means that the budget of the run is spent:
// make no further request, and return the error unless the result is complete.
// Usage returns nil if the host has no budget.
func (r *Request) Usage(ctx context.Context, u Usage) error {
	if reporter, ok := r.Host.(UsageReporter); ok {
		return reporter.ReportUsage(ctx, u)
	}
	return nil
}

// Invocation is a call of another action, for [Request.Invoke].
type Invocation struct {
	Action string
	// Params are the parameters, as in [Host.Invoke].
	Params any
	// Key identifies the call among the calls of the same request: letters,
	// digits and ".", "_", "-", "@", at most 100 of them. A call with a Key
	// succeeds only once: its result is in the checkpoint before Invoke returns,
	// and a later call with the Key, also after a crash, returns it. [CallNote] is
	// the prefix of the note with it. All attempts have the same idempotency key,
	// whatever their parameters. The run shows a call with a Key like a node.
	// Without a Key, calls are distinguished by action, parameters and order.
	Key string
	// Attempt counts the attempts of a call with a Key from 1; 0 counts as 1.
	Attempt int
	// Roots are additional names for the templates in Params, which the host
	// evaluates for this call; nil means that Params have no templates. Templates
	// that the workflow contains in a parameter whose schema has the annotation
	// [Templates] can read the same as others in the workflow, any other
	// templates only Roots and the state.
	Roots map[string]any
	// Output, if not nil, replaces the result of the call. Its templates can read
	// the same as those in Params, and the result as "result".
	Output any
}

// CallNote is the prefix of the name of the note in which the host keeps the result
// of a call with a Key: an object with "result" and the times "started_at" and
// "ended_at".
const CallNote = "call/"

// Templates is an annotation of a parameter's schema. The host does not evaluate
// templates in the parameter; the action passes them on in an [Invocation]. The
// value is the list of the names in Roots.
const Templates = "x-templates"

// ParamsOf is an annotation of a parameter's schema: the parameter has the parameters
// of another action. The value of the annotation is the name of the sibling parameter
// that names this action. The host checks the parameters against the action when it
// loads a workflow.
const ParamsOf = "x-params-of"

// Update is an annotation of the schema of a result: the result is an update of the state.
// Without output the host merges all of its members, also success.
const Update = "x-update"

// Files is an annotation of the schema of a result; see [WritesFiles].
const Files = "x-files"

// Invoker is implemented by a Host that supports [Invocation]. Actions call
// [Request.Invoke], which works with every host.
type Invoker interface {
	InvokeAs(ctx context.Context, call Invocation) (*Response, error)
}

// Invoke calls another action as Host.Invoke does. The error is a
// dependency_missing [*Error] if the host cannot evaluate templates and call has
// Roots or an Output.
func (r *Request) Invoke(ctx context.Context, call Invocation) (*Response, error) {
	// A host that embeds another one and overrides Invoke gets plain calls.
	plain := call.Key == "" && call.Attempt <= 1 && call.Roots == nil && call.Output == nil
	if invoker, ok := r.Host.(Invoker); ok && !plain {
		return invoker.InvokeAs(ctx, call)
	}
	if call.Roots != nil || call.Output != nil {
		return nil, Errorf(DependencyMissing, "%s: this host cannot evaluate templates for an action", call.Action)
	}
	return r.Host.Invoke(ctx, call.Action, call.Params)
}

// Call identifies a call.
type Call struct {
	// RunID is the run, and Node the path of the node in it, such as
	// "each[3]/fetch"; empty outside of a run.
	RunID, Node string
	// Attempt counts the attempts of this call from 1.
	Attempt int
	// IdempotencyKey is the same for every repetition of a call, in retries and
	// after a resume. Pass it to servers that accept one.
	IdempotencyKey string
	// Once reports whether the call must not be repeated after it may have had its effect.
	Once bool
	// DryRun asks an action that is marked with [DryRun] to check the call and to leave
	// out its effect. Its result has dry_run: true.
	DryRun bool
	// Traceparent and Tracestate are the W3C trace context, empty without traces.
	Traceparent, Tracestate string
}

// Response is the answer of an action. The handler must not change it, or values
// in it, after it has returned.
type Response struct {
	// Result is usually a JSON object. Its fields are merged into the state or
	// stored under the node's output key.
	Result Payload
}

// Respond returns a response with any value that encoding/json can marshal.
func Respond(v any) *Response { return &Response{Result: ValuePayload(v)} }

// Host gives an action access to its host while a call runs. All methods are safe
// for concurrent use; after the call has ended they return an error or do nothing.
type Host interface {
	// Invoke calls another action of the workflow, including Lua actions and
	// other plugins. It runs under the same node, with an idempotency key
	// derived from the caller's. The error is an [*Error].
	Invoke(ctx context.Context, action string, params any) (*Response, error)
	// Describe returns the description of an action. The error is a not_found
	// [*Error] if it does not exist.
	Describe(ctx context.Context, action string) (*ActionInfo, error)
	// Log writes a record to the run's log.
	Log(ctx context.Context, level slog.Level, message string, fields map[string]any)
	// Token emits a piece of text immediately.
	Token(ctx context.Context, text string)
	// Progress reports the progress of the call: a fraction from 0 to 1
	// (negative if unknown) and a short message.
	Progress(ctx context.Context, fraction float64, message string)
	// Note reads a durable note that this node has written under key, also
	// before a crash; found is false if there is none.
	Note(ctx context.Context, key string) (note Payload, found bool, err error)
	// SetNote stores a note in the run's checkpoint. When it returns, the note
	// is as durable as the other steps of the run.
	SetNote(ctx context.Context, key string, note any) error
}

// Usage is the usage of one request to a model.
type Usage struct {
	Tokens int64
	USD    float64
}

// UsageReporter is implemented by a [Host] with a budget. Actions call
// [Request.Usage], which works with every host.
type UsageReporter interface {
	// ReportUsage counts u against the run's budget. The error is an [*Error] of
	// type budget_exceeded if the budget, including u, is spent.
	ReportUsage(ctx context.Context, u Usage) error
}
