package host

import (
	"context"
	"log/slog"

	"github.com/the-edge-agent/tea/host/internal/engine"
	"github.com/the-edge-agent/tea/host/internal/graph"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Values reads the values of a trigger of the kind poll or stream. It is safe for
// concurrent use.
type Values struct {
	serve       *graph.Serve
	when, reset *graph.Condition
	actions     engine.Actions
	env         map[string]any
	request     tea.Request
	host        outsideHost
}

// Values returns what reads the values of a trigger of s, with the secrets and the
// environment of o.
func (wf *Workflow) Values(s *Serving, trigger int, o RunOptions) (*Values, error) {
	r, err := wf.resolve(o.Secrets)
	if err != nil {
		return nil, err
	}
	config := &s.Config().Triggers[trigger]
	with, err := s.compiled.With(context.Background(), trigger, o.Env)
	if err != nil {
		return nil, err
	}
	params, err := tea.ValuePayload(with).Encoded()
	call := tea.Call{Node: config.Name, Attempt: 1}
	return &Values{
		serve: s.compiled, when: s.compiled.Condition(trigger, false), reset: s.compiled.Condition(trigger, true), actions: r.actions, env: o.Env,
		request: tea.Request{Action: config.Values.Call.Uses.Value, Params: params, Call: call}, host: outsideHost{actions: r.actions, log: wf.log(), call: call},
	}, err
}

// Call calls the action outside of a run, and returns its result. token receives the
// values of a stream and must return before the next one is read.
func (v *Values) Call(ctx context.Context, token func(ctx context.Context, text string)) (any, error) {
	req, host := v.request, v.host
	host.token = token
	req.Host = &host
	res, err := v.actions.Invoke(ctx, &req)
	if err != nil {
		return nil, err
	}
	return res.Result.Value()
}

// When reports whether the condition when is true; known is false if the trigger has
// none, or if it reads a previous value that there is not.
func (v *Values) When(ctx context.Context, result, previous any) (holds, known bool, err error) {
	return v.holds(ctx, v.when, result, previous)
}

// Reset is [Values.When] for the condition reset.
func (v *Values) Reset(ctx context.Context, result, previous any) (holds, known bool, err error) {
	return v.holds(ctx, v.reset, result, previous)
}

func (v *Values) holds(ctx context.Context, c *graph.Condition, result, previous any) (holds, known bool, err error) {
	if c == nil || previous == nil && c.ReadsPrevious() {
		return false, false, nil
	}
	holds, err = v.serve.Holds(ctx, c, result, previous, v.env)
	return holds, true, err
}

// outsideHost is the host of a call outside of a run.
type outsideHost struct {
	actions engine.Actions
	log     *slog.Logger
	call    tea.Call
	token   func(ctx context.Context, text string) // nil: tokens are dropped
}

func (h *outsideHost) Invoke(ctx context.Context, action string, params any) (*tea.Response, error) {
	return h.actions.Invoke(ctx, &tea.Request{Action: action, Params: tea.AsPayload(params), Call: h.call, Host: h})
}

func (h *outsideHost) Describe(_ context.Context, action string) (*tea.ActionInfo, error) {
	info, ok := h.actions.Describe(action)
	if !ok {
		return nil, tea.Errorf(tea.NotFound, "unknown action %q", action)
	}
	return &info, nil
}

func (h *outsideHost) Log(ctx context.Context, level slog.Level, message string, _ map[string]any) {
	h.log.Log(ctx, level, message)
}

func (h *outsideHost) Token(ctx context.Context, text string) {
	if h.token != nil {
		h.token(ctx, text)
	}
}

func (*outsideHost) Progress(context.Context, float64, string) {}

func (*outsideHost) Note(context.Context, string) (tea.Payload, bool, error) {
	return tea.Payload{}, false, nil
}

func (*outsideHost) SetNote(context.Context, string, any) error {
	return tea.Errorf(tea.ValidationError, "a call outside of a run has no notes")
}
