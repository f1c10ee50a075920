package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// callCounter names the calls of one attempt, so that a repeated attempt uses the
// same idempotency keys: by action, parameters and occurrence, not by order,
// since calls may be concurrent.
type callCounter struct {
	mu   sync.Mutex
	seen map[execpath.Path]int
}

func (c *callCounter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = nil
}

// path names a call made at a path. It replaces the parameters by their JSON text,
// which a plugin needs too.
func (c *callCounter) path(at execpath.Path, action string, params *tea.Payload) execpath.Path {
	hash := fnv.New32a()
	if encoded, err := params.Encoded(); err == nil {
		*params = encoded
		raw, _ := encoded.JSON() // params are encoded
		hash.Write(raw)
	}
	path := at.Call(action, hash.Sum32())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[execpath.Path]int{}
	}
	c.seen[path]++
	return path.Visit(c.seen[path])
}

func (x *execution) action(ctx context.Context, b *graph.Action) (any, error) {
	var params any = x.frame.run.empty
	if b.With != nil {
		v, err := x.input(ctx, x.path, b.With)
		if err != nil {
			return nil, err
		}
		if v != nil {
			params = v
		}
	}
	x.params = params
	result, err := x.call(ctx, b.Uses, tea.ValuePayload(params), x.path, &x.trying)
	if err != nil {
		err = located(b, err)
	}
	return result, err
}

// located adds the position in the workflow file to an error in code that is a parameter.
func located(b *graph.Action, err error) error {
	var failure *tea.Error
	if !errors.As(err, &failure) {
		return err
	}
	name, line := failure.CodeLine()
	if line == 0 {
		return err
	}
	pos, ok := b.CodePos(name, line)
	if !ok {
		return err
	}
	at := *failure
	at.Message = pos.String() + ": " + failure.Message
	return &at
}

func (x *execution) scope(result any) scope {
	return scope{frame: x.frame, state: x.frame.state, result: result, joined: x.joined}
}

// call invokes an action and returns its result in the value model.
func (x *execution) call(ctx context.Context, name string, params tea.Payload, path execpath.Path, outer *meter) (any, error) {
	res, spent, err := x.invoke(ctx, name, params, path, x.frame.calls, outer)
	if err != nil {
		return nil, err
	}
	result, err := res.Result.Value()
	if err != nil {
		return nil, notJSON(name, err)
	}
	x.frame.run.spend(spent, result)
	return result, nil
}

// notJSON is the error for an action result that cannot be decoded.
func notJSON(action string, err error) error {
	return tea.Errorf(tea.InternalError, "result of %s: not JSON: %w", action, malformed{err})
}

// malformed is the cause of an error that is the plugin's fault.
type malformed struct{ error }

// PluginFault marks the error as the plugin's fault.
func (malformed) PluginFault() {}

// callTool is call for Lua code; it counts as a tool call.
func (x *execution) callTool(ctx context.Context, name string, params tea.Payload) (any, error) {
	r := x.frame.run
	if err := r.useTool(&x.trying); err != nil {
		return nil, tea.Errorf(tea.BudgetExceeded, "%w", err)
	}
	path := x.calls.path(x.path, name, &params)
	result, err := x.call(ctx, name, params, path, &x.trying)
	if errors.Is(err, errSuspended) {
		r.refundTool(&x.trying)
	}
	return result, err
}

// invoke is [execution.invokeOnce], and repeats a call of an idempotent action once
// if the plugin died during it. No other code repeats a call. To prevent retries
// from multiplying, it does not repeat calls of a node that has a retry policy or
// is part of something that is being retried.
func (x *execution) invoke(ctx context.Context, name string, params tea.Payload, path execpath.Path, deep int, outer *meter) (*tea.Response, *meter, error) {
	if x.happensOnce(name, deep) {
		return x.invokeMarked(ctx, name, params, path, deep, outer)
	}
	res, spent, err := x.invokeOnce(ctx, name, params, path, deep, outer, x.attempt, false)
	if err == nil || ctx.Err() != nil || !x.repeats(name, path, err) {
		return res, spent, err
	}
	x.countRetries(1)
	x.frame.run.emit(flow.EventRetry, x.node.Name, x.path, retryFields(x.attempt, 0, asFailure(err), field("call", name))...)
	return x.invokeOnce(ctx, name, params, path, deep, outer, x.attempt+1, false)
}

// repeats reports whether a failed call is repeated.
func (x *execution) repeats(name string, path execpath.Path, err error) bool {
	var crash interface{ Crashed() }
	if !errors.As(err, &crash) || x.node.Retry.MaxRetries > 0 || path.WithoutAttempts() != path {
		return false
	}
	info, ok := x.frame.run.o.Actions.Describe(name)
	return ok && info.Idempotent
}

// invokeOnce calls an action at a nesting depth; its usage also counts for outer.
// The caller adds the usage that the result reports to the returned meter.
func (x *execution) invokeOnce(ctx context.Context, name string, params tea.Payload, path execpath.Path, deep int, outer *meter, attempt int, once bool) (*tea.Response, *meter, error) {
	r := x.frame.run
	call := x.first.Swap(nil)
	if call == nil {
		call = &actionCall{}
	}
	call.host.x, call.host.path, call.host.deep, call.host.round, call.host.spent.outer = x, path, deep, x.round, outer
	req := &call.req
	req.Action, req.Params, req.Host = name, params, &call.host
	req.RunID, req.Node, req.Attempt, req.Once = r.o.RunID, string(x.path), attempt, once
	req.IdempotencyKey, req.Traceparent = r.callIDs(call.ids[:0], path, x.path, x.attempt)
	var res *tea.Response
	var err error
	if r.o.Middleware != nil {
		res, err = r.o.Middleware(ctx, req, x.send)
	} else {
		res, err = x.send(ctx, req)
	}
	if errors.Is(err, ErrHandOver) {
		r.suspend(flow.Interrupt{Path: string(path), Kind: interruptInner})
	}
	if r.suspendedAt(path) {
		return nil, nil, errSuspended
	}
	if err != nil {
		if ctx.Err() != nil && !errors.As(err, new(*tea.Error)) {
			return nil, nil, context.Cause(ctx)
		}
		return nil, nil, r.stopOverBudget(err)
	}
	if res == nil {
		return nil, nil, tea.Errorf(tea.InternalError, "%s returned neither a result nor an error", name)
	}
	x.emitFiles(name, params, res)
	return res, &call.host.spent, nil
}

// send makes a call. In a dry run, it makes the call if the action only reads. Any other
// call is checked, and reported by an event.
func (x *execution) send(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	r := x.frame.run
	if !r.o.DryRun {
		return r.o.Actions.Invoke(ctx, req)
	}
	info, _ := r.o.Actions.Describe(req.Action)
	req.DryRun = req.Once || !info.Reads
	res, err := r.o.Actions.Invoke(ctx, req)
	if err == nil && req.DryRun {
		params, _ := req.Params.Shared() // they were checked
		r.emit(flow.EventDryRun, x.node.Name, x.path, field("call", req.Action), field("params", params))
	}
	return res, err
}

// suspendedAt reports whether an interrupt waits at a path.
func (r *run) suspendedAt(path execpath.Path) bool {
	if !r.suspended.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range r.pending {
		if i.Path == string(path) {
			return true
		}
	}
	return false
}

// maxDeep is the maximum nesting depth of calls.
const maxDeep = 64

// maxRecursions is the maximum number of times that workflows can run themselves in
// one run, directly or through others. The depth does not bound workflows that do so
// for each item of a map.
const maxRecursions = 2_000

// isInside reports whether a frame is a part of a run of a graph.
func (f *frame) isInside(g *graph.Graph) bool {
	for ; f != nil; f = f.enclosing {
		if f.graph == g {
			return true
		}
	}
	return false
}

// noteName names a durable note of a call.
type noteName struct {
	path execpath.Path
	key  string
}

// actionCall is one call of an action. It is not used again: a plugin may use the host
// late, during the next attempt.
type actionCall struct {
	host callHost
	req  tea.Request
	// ids backs the request's IdempotencyKey and Traceparent.
	ids [96]byte
}

// callHost is the part of the run that an action can access during a call.
type callHost struct {
	x    *execution
	path execpath.Path
	// deep is the nesting depth of the call.
	deep int
	// round is the round of the execution.
	round int
	// spent is the usage of the call.
	spent meter
	// calls names the calls that the action makes.
	calls callCounter
	// cursor is the position in the text that the call streams.
	cursor tokenCursor
}

func (h *callHost) Invoke(ctx context.Context, action string, params any) (*tea.Response, error) {
	payload := tea.AsPayload(params)
	return h.invoke(ctx, action, payload, h.calls.path(h.path, action, &payload))
}

// invoke calls another action at a path.
func (h *callHost) invoke(ctx context.Context, action string, params tea.Payload, path execpath.Path) (*tea.Response, error) {
	r := h.x.frame.run
	if h.deep >= maxDeep {
		return nil, tea.Errorf(tea.ValidationError, "actions call each other more than %d deep; does %s call itself?", maxDeep, action)
	}
	if action != MaskAction {
		if err := r.useTool(&h.spent); err != nil {
			return nil, tea.Errorf(tea.BudgetExceeded, "%w", err)
		}
	}
	res, spent, err := h.x.invoke(ctx, action, params, path, h.deep+1, &h.spent)
	if errors.Is(err, errSuspended) {
		r.refundTool(&h.spent)
		r.suspend(flow.Interrupt{Path: string(h.path), Kind: interruptInner})
		return nil, tea.Errorf(tea.Canceled, "the run waits for an answer")
	}
	if err != nil {
		return nil, err
	}
	result, err := res.Result.Shared()
	if err != nil {
		return nil, notJSON(action, err)
	}
	r.spend(spent, result)
	return res, nil
}

func (h *callHost) ReportUsage(_ context.Context, u tea.Usage) error {
	return h.x.frame.run.report(&h.spent, h.x.path, u)
}

func (h *callHost) Describe(_ context.Context, action string) (*tea.ActionInfo, error) {
	info, ok := h.x.frame.run.o.Actions.Describe(action)
	if !ok {
		return nil, tea.Errorf(tea.NotFound, "unknown action %q", action)
	}
	return &info, nil
}

func (h *callHost) Log(_ context.Context, level slog.Level, message string, fields map[string]any) {
	h.x.frame.run.logEvent(h.x.node.Name, h.x.path, level, message, value.Fields(fields))
}

func (h *callHost) Token(_ context.Context, text string) { h.x.token(h, text) }

// Progress emits a log event with a fraction.
func (h *callHost) Progress(_ context.Context, fraction float64, message string) {
	fields := []flow.Field{field("level", slog.LevelInfo.String()), field("message", message)}
	if fraction >= 0 {
		fields = append(fields, field("progress", fraction))
	}
	h.x.frame.run.emit(flow.EventLog, h.x.node.Name, h.x.path, fields...)
}

// Note reads a durable note of this call.
func (h *callHost) Note(_ context.Context, key string) (tea.Payload, bool, error) {
	r := h.x.frame.run
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.notes[noteName{h.path, key}]
	if !ok {
		v, ok = r.replay.Note(h.path, key, h.x.frame.void)
	}
	return tea.ValuePayload(v), ok, nil
}

// SetNote stores a durable note of this call.
func (h *callHost) SetNote(_ context.Context, key string, note any) error {
	v, err := tea.AsPayload(note).Value()
	if err != nil {
		return tea.Errorf(tea.ValidationError, "note %q: %w", key, err)
	}
	r := h.x.frame.run
	if err := r.append(h.path, &replay.Note{Key: key, Value: v}); err != nil {
		return err
	}
	r.setNote(noteName{h.path, key}, v)
	return nil
}

func (r *run) setNote(name noteName, v any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.notes == nil {
		r.notes = map[noteName]any{}
	}
	r.notes[name] = v
}

// State returns the state as the node sees it, for Lua actions.
func (h *callHost) State() map[string]any { return h.x.frame.state.Values() }

// LuaSteps returns the instruction limit of Lua actions; 0 = a time limit.
func (h *callHost) LuaSteps() int { return h.x.frame.luaSteps() }

func (h *callHost) Secret(name string) (any, bool) {
	v, ok := h.x.frame.run.o.Secrets.Values()[name]
	return v, ok
}

// MaskAction masks secrets for an action that writes files itself. It does not
// count as a tool call.
const MaskAction = "secrets.mask"

// Mask replaces the run's secrets in a value.
func (h *callHost) Mask(v any) any { return h.x.frame.run.o.Secrets.Redact(v) }

// SaveCheckpoint makes the journal durable and returns the path of its file.
func (h *callHost) SaveCheckpoint() (string, error) {
	j := h.x.frame.run.o.Journal
	if h.x.frame.run.o.DryRun {
		return "", nil
	}
	if j == nil {
		return "", tea.Errorf(tea.DependencyMissing, "this run keeps no checkpoint; give a directory with -c and a durability other than off")
	}
	if err := j.Sync(); err != nil {
		return "", tea.Errorf(tea.InternalError, "write the checkpoint: %w", err)
	}
	h.x.frame.run.emit(flow.EventCheckpoint, h.x.node.Name, h.x.path, field("path", j.Path()))
	return j.Path(), nil
}

// RunWorkflow runs another workflow file inside this run.
func (h *callHost) RunWorkflow(ctx context.Context, path string, input map[string]any) (map[string]any, error) {
	f := h.x.frame
	if h.deep >= maxDeep {
		return nil, tea.Errorf(tea.ValidationError, "workflow.run is nested more than %d deep; does %s run itself?", maxDeep, path)
	}
	if f.run.o.LoadGraph == nil {
		return nil, tea.Errorf(tea.DependencyMissing, "workflow.run is not available here")
	}
	g, err := f.run.o.LoadGraph(f.graph.Workflow.Dir, path)
	if err != nil {
		return nil, err
	}
	if missing := g.MissingSecrets(f.run.o.Secrets.Values()).Err(); missing != nil {
		return nil, tea.Errorf(tea.ValidationError, "run %s: %w", path, missing)
	}
	if f.isInside(g) && f.run.recursions.Add(1) > maxRecursions {
		return nil, f.run.exhaust(&flow.BudgetError{Limit: "recursion", Used: fmt.Sprintf("%d runs of %s inside itself", maxRecursions, path)})
	}
	h.x.ranInside.Store(true)
	final, err := f.runGraph(ctx, g, h.path.Attempt(h.round), input, h.deep+1, func() error {
		// A call with other parameters has another path, except for the node's own.
		if b, ok := h.x.node.Body.(*graph.Action); ok && h.path == h.x.path {
			return h.x.begin(h.path, b.With, map[string]any{"path": path, "input": orEmpty(input)})
		}
		return nil
	})
	if errors.Is(err, errSuspended) {
		f.run.suspend(flow.Interrupt{Path: string(h.path), Kind: interruptInner})
	}
	return final, err
}

// Ask asks the run's source of answers. Without one, the run stops and the call
// ends with an error. After the question's deadline timedOut is true and answer is
// nil.
func (h *callHost) Ask(ctx context.Context, q Question) (answer any, timedOut bool, err error) {
	return h.x.frame.ask(ctx, h.x.node.Name, h.path, q)
}
