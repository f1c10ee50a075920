package trace

import (
	"context"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/internal/tracecontext"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Invoke stands around the call of an action and makes its span: a further
// one under the node, or the node's own where the call is all that the node
// does. What is called sees the span as the caller's in its trace context.
func (t *Tracer) Invoke(ctx context.Context, req *tea.Request, next func(context.Context, *tea.Request) (*tea.Response, error)) (*tea.Response, error) {
	if strings.HasPrefix(req.Action, "trace.") {
		return next(ctx, req)
	}
	call, own := t.begin(req)
	if call == nil {
		return next(ctx, req)
	}
	traced := *req
	traced.Traceparent = call.trace.Parent(call.id)
	resp, err := next(ctx, &traced)
	t.conclude(call, own, resp, err)
	return resp, err
}

// begin gives the span of a call, and whether it is the call's own; nil where
// the run is not traced.
func (t *Tracer) begin(req *tea.Request) (call *span, own bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.runs[req.RunID]
	if r == nil {
		return nil, false
	}
	call = r.at(req.Node)
	if own = call.action != req.Action; own {
		call = &span{
			trace: r.trace, id: tracecontext.SpanOf(req.IdempotencyKey, req.Attempt), parent: call.id,
			name: req.Action, kind: kindClient, start: time.Now(),
		}
		call.set("tea.action", req.Action)
	}
	call.action = ""
	if params, err := req.Params.Shared(); err == nil {
		call.ask(req.Action, params)
		if t.contents {
			call.set("tea.params", content(t.secrets.Redact(params)))
		}
	}
	return call, own
}

// conclude adds what came of a call.
func (t *Tracer) conclude(call *span, own bool, resp *tea.Response, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if resp != nil {
		if result, err := resp.Result.Shared(); err == nil {
			object, _ := result.(map[string]any)
			call.answer(object)
			if t.contents {
				call.set("tea.result", content(t.secrets.Redact(result)))
			}
		}
	}
	if !own {
		return // the node's events tell how it ends
	}
	now := time.Now()
	if failure := tea.AsError(err); failure != nil {
		call.fail(now, string(failure.Type), t.secrets.Text(failure.Message))
	}
	call.end = now
	t.export(call)
}
