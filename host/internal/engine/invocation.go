package engine

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
)

// maxKey bounds the length of a call's key, which becomes part of paths.
const maxKey = 100

// checkKey rejects keys that paths cannot contain.
func checkKey(key string) error {
	const signs = "._-@"
	for _, c := range key {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(signs, c) {
			continue
		}
		return tea.Errorf(tea.ValidationError, "the key of a call, %.100q, contains %q; use letters, digits and any of %s", key, c, signs)
	}
	if len(key) > maxKey {
		return tea.Errorf(tea.ValidationError, "the key of a call, %.20q..., has %d characters; the limit is %d", key, len(key), maxKey)
	}
	return nil
}

func (h *callHost) InvokeAs(ctx context.Context, call tea.Invocation) (*tea.Response, error) {
	if call.Key == "" {
		params, err := h.params(ctx, call)
		if err != nil {
			return nil, err
		}
		return h.invokeFor(ctx, call, params, h.calls.path(h.path, call.Action, &params))
	}
	if err := checkKey(call.Key); err != nil {
		return nil, err
	}
	note, done, err := h.Note(ctx, tea.CallNote+call.Key)
	if err != nil {
		return nil, err
	}
	if !done {
		return h.invokeKeyed(ctx, call)
	}
	v, err := note.Shared()
	if err != nil {
		return nil, err
	}
	recorded, _ := v.(map[string]any)
	return tea.Respond(recorded["result"]), nil
}

// invokeKeyed makes a call with a key, which is reported like a node. Its result is
// recorded before its end is reported.
func (h *callHost) invokeKeyed(ctx context.Context, call tea.Invocation) (*tea.Response, error) {
	params, err := h.params(ctx, call)
	if err != nil {
		return nil, err
	}
	path := h.path.Keyed(call.Key).Attempt(call.Attempt)
	r, node := h.x.frame.run, h.x.node.Name
	r.emit(flow.EventNodeStart, node, path, field("uses", call.Action))
	started := r.now()
	res, err := h.invokeFor(ctx, call, params, path)
	ended := r.now()
	took := field("duration_ms", milliseconds(ended.Sub(started)))
	if err == nil {
		err = h.record(ctx, call, res, started, ended)
	}
	switch {
	case err == nil:
		r.emitWith(r.callValues(params, res.Result), flow.EventNodeEnd, node, path, took)
		return res, nil
	case !r.suspendedAt(path) && ctx.Err() == nil:
		r.emitWith(r.callValues(params, tea.Payload{}), flow.EventNodeError, node, path, failed(r.failure(err), field("attempts", int64(max(1, call.Attempt))), took)...)
	}
	return nil, err
}

// callValues is [run.values] for a call with a key.
func (r *run) callValues(params, result tea.Payload) []flow.Field {
	if r.o.Values == nil {
		return nil
	}
	p, _ := params.Shared() // cannot fail: they were sent
	v, _ := result.Shared() // cannot fail: it was recorded
	return r.values(p, v)
}

// record stores the result of a call with a key in a note.
func (h *callHost) record(ctx context.Context, call tea.Invocation, res *tea.Response, started, ended time.Time) error {
	result, err := res.Result.Shared()
	if err != nil {
		return notJSON(call.Action, err)
	}
	const format = "2006-01-02T15:04:05.000Z"
	return h.SetNote(ctx, tea.CallNote+call.Key, map[string]any{
		"result": result, "started_at": started.UTC().Format(format), "ended_at": ended.UTC().Format(format),
	})
}

// params returns the parameters of a call with their templates evaluated.
func (h *callHost) params(ctx context.Context, call tea.Invocation) (tea.Payload, error) {
	params := tea.AsPayload(call.Params)
	if call.Roots == nil {
		return params, nil
	}
	v, err := h.x.render(ctx, params, call.Roots)
	if err != nil {
		return params, h.x.frame.run.failure(err)
	}
	return tea.ValuePayload(v), nil
}

// invokeFor makes the call at a path and evaluates its output.
func (h *callHost) invokeFor(ctx context.Context, call tea.Invocation, params tea.Payload, path execpath.Path) (*tea.Response, error) {
	res, err := h.invoke(ctx, call.Action, params, path)
	if err != nil || call.Output == nil {
		return res, err
	}
	result, err := res.Result.Shared()
	if err != nil {
		return nil, notJSON(call.Action, err)
	}
	roots := maps.Clone(call.Roots)
	if roots == nil {
		roots = map[string]any{}
	}
	roots["result"] = result
	v, err := h.x.render(ctx, tea.AsPayload(call.Output), roots)
	if err != nil {
		return nil, h.x.frame.run.failure(fmt.Errorf("output of %s: %w", call.Action, err))
	}
	return tea.Respond(v), nil
}

// render evaluates the templates in the parameters of a call that an action makes.
// Templates of the workflow read what the node's other templates can; templates
// from data read only the roots and the state.
func (x *execution) render(ctx context.Context, params tea.Payload, roots map[string]any) (any, error) {
	v, err := params.Shared()
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "parameters: %w", err)
	}
	var own map[string]*expr.Template
	if b, ok := x.node.Body.(*graph.Action); ok {
		own = b.Deferred
	}
	return x.renderValue(ctx, v, callScope{scope: x.scope(nil), roots: roots}, own)
}

func (x *execution) renderValue(ctx context.Context, v any, s callScope, own map[string]*expr.Template) (any, error) {
	switch v := v.(type) {
	case string:
		if !expr.IsTemplate(v) {
			return v, nil
		}
		t := own[v]
		if t == nil {
			var err error
			if t, err = s.data(v); err != nil {
				return nil, err
			}
			s.isData = true
		}
		return t.Eval(ctx, s)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = x.renderValue(ctx, v[i], s, own); err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			var err error
			if out[name], err = x.renderValue(ctx, member, s, own); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		return out, nil
	}
	return v, nil
}

// callScope has the roots of templates in a call that an action makes.
type callScope struct {
	scope
	roots map[string]any
	// isData reports whether the template is not the workflow's.
	isData bool
}

// data compiles a template that is not the workflow's.
func (s callScope) data(text string) (*expr.Template, error) {
	t, err := expr.Compile(text)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "template: %w", err)
	}
	for _, ref := range t.Roots() {
		if _, ok := s.roots[ref.Root]; !ok && ref.Root != "state" {
			return nil, tea.Errorf(tea.ValidationError, "the template %.100q reads %q: a template that is not written in the parameter itself can read only the names of the action and the state", text, ref.Root)
		}
	}
	return t, nil
}

// Lookup looks in the roots of the call first.
func (s callScope) Lookup(name string) (any, bool) {
	if v, ok := s.roots[name]; ok {
		return v, true
	}
	if s.isData && name != "state" {
		return nil, false
	}
	return s.scope.Lookup(name)
}

// Field leaves the roots of the call to Lookup.
func (s callScope) Field(root, key string) (any, bool) {
	if _, ok := s.roots[root]; ok || s.isData && root != "state" {
		return nil, false
	}
	return s.scope.Field(root, key)
}
