package trace

import (
	"context"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/internal/tracecontext"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Invoke wraps the call of an action and creates its span: a separate one below the node,
// or the node's own if the node only makes this call. The called action gets the span as
// the parent in its trace context.
func (t *Tracer) Invoke(ctx context.Context, req *tea.Request, next func(context.Context, *tea.Request) (*tea.Response, error)) (*tea.Response, error) {
	if !t.exports || strings.HasPrefix(req.Action, "trace.") {
		return next(ctx, req)
	}
	call, own := t.begin(req)
	if call == nil {
		return next(ctx, req)
	}
	traced := *req
	traced.Traceparent = call.trace.Parent(call.id)
	resp, err := next(ctx, &traced)
	t.finish(call, own, resp, err)
	return resp, err
}

// begin returns the span of a call, and whether it belongs to the call alone; nil if the
// run is not traced.
func (t *Tracer) begin(req *tea.Request) (call *span, own bool) {
	asked := t.decoded(ModelOperation(req.Action) != "", req.Params)
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.runs[req.RunID]
	if r == nil {
		return nil, false
	}
	call = r.belongsTo(execpath.Path(req.Node))
	if own = call.action != req.Action; own {
		call = &span{
			trace: r.trace, id: tracecontext.SpanOf(req.IdempotencyKey, req.Attempt), parent: call.id,
			name: t.mask.Text(req.Action), kind: kindClient, start: time.Now(),
		}
		call.set("tea.action", call.name)
	}
	call.action = ""
	object, _ := asked.value.(map[string]any)
	call.ask(req.Action, object)
	call.set("tea.params", asked.content)
	return call, own
}

// finish adds the outcome of a call to its span.
func (t *Tracer) finish(call *span, own bool, resp *tea.Response, err error) {
	var answered contents
	if resp != nil {
		// The events of a node describe its only call.
		answered = t.decoded(own && ModelOperation(call.name) != "", resp.Result)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	object, _ := answered.value.(map[string]any)
	call.answer(object)
	call.set("tea.result", answered.content)
	if !own {
		return // the node's events end it
	}
	now := time.Now()
	if failure := tea.AsError(err); failure != nil {
		call.fail(now, string(failure.Type), t.mask.Text(failure.Message))
	}
	call.end = now
	t.export(call)
}

// contents are the parameters or the result of a call, as far as the span needs them.
type contents struct {
	value   any
	content string
}

// decoded decodes a payload if the span needs it: for the attributes of a model call, or
// because contents are requested. The caller does not hold mu.
func (t *Tracer) decoded(needed bool, p tea.Payload) (c contents) {
	if !needed && !t.contents {
		return c
	}
	v, err := p.Shared()
	if err != nil {
		return c
	}
	c.value = v
	if t.contents {
		c.content = content(t.mask.Value(v))
	}
	return c
}
