package tea

import (
	"context"
	"log/slog"
)

// Request is one call of an action. It belongs to the call; its fields must
// not be changed.
type Request struct {
	// Action is the name under which the action was called.
	Action string
	// Params is the JSON object of parameters, templates already resolved.
	Params Payload
	// Instance is what the bundle's Open returned for the caller's settings.
	Instance any
	// Call says who calls.
	Call
	// Host is the way back: other actions, logs, tokens, notes. Never nil in
	// a handler.
	Host Host

	accepted acceptance
}

// Usage reports what one request to a model has used: the amounts of that
// request alone, once after each request, failed and repeated ones included. An
// error of type budget_exceeded says that the run's budget is spent: make no
// further request, and return the error unless the result is complete. Where
// the host keeps no budget it returns nil.
func (r *Request) Usage(ctx context.Context, u Usage) error {
	if reporter, ok := r.Host.(UsageReporter); ok {
		return reporter.ReportUsage(ctx, u)
	}
	return nil
}

// Call identifies a call to the outside world.
type Call struct {
	// RunID is the run; Node the path of the node in it, such as
	// "each[3]/fetch", empty where there is none.
	RunID, Node string
	// Attempt counts tries of this call from 1.
	Attempt int
	// IdempotencyKey stays the same when a call is repeated, within a run's
	// retries and after a resume: hand it to servers that accept one.
	IdempotencyKey string
	// Traceparent and Tracestate are the W3C trace context, empty without traces.
	Traceparent, Tracestate string
}

// Response is an action's answer.
type Response struct {
	// Result is usually a JSON object; its fields are merged into the state
	// or stored under the node's output key.
	Result Payload
}

// Respond makes a response of any value that encoding/json can marshal.
func Respond(v any) *Response { return &Response{Result: ValuePayload(v)} }

// Host is what an action can ask of its host while it runs. All methods are
// safe for concurrent use and return an error once the call is over.
type Host interface {
	// Invoke calls another action of the workflow, Lua actions and other
	// plugins included. It runs under the same node, with an idempotency key
	// derived from the caller's.
	Invoke(ctx context.Context, action string, params any) (*Response, error)
	// Describe gives an action's description; an [*Error] of type not_found
	// where there is none.
	Describe(ctx context.Context, action string) (*ActionInfo, error)
	// Log writes a record to the run's log.
	Log(ctx context.Context, level slog.Level, message string, fields map[string]any)
	// Token emits a piece of text as soon as it is there.
	Token(ctx context.Context, text string)
	// Progress reports how far the work is: a fraction from 0 to 1 (below 0
	// = unknown) and a few words.
	Progress(ctx context.Context, fraction float64, message string)
	// Note reads a durable note that this node wrote earlier under key, also
	// before a crash; found is false where there is none.
	Note(ctx context.Context, key string) (note Payload, found bool, err error)
	// SetNote stores a note in the run's checkpoint. When it returns, the
	// note is as durable as the run's other steps.
	SetNote(ctx context.Context, key string, note any) error
}

// Usage is what one request to a model has used.
type Usage struct {
	Tokens int64
	USD    float64
}

// UsageReporter is what a [Host] also implements where it keeps a budget.
// Actions call [Request.Usage], which works with every host.
type UsageReporter interface {
	// ReportUsage counts u against the run's budget. It returns an [*Error] of type budget_exceeded when the budget is
	// spent, u included.
	ReportUsage(ctx context.Context, u Usage) error
}
