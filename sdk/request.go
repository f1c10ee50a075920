package tea

import "context"

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
