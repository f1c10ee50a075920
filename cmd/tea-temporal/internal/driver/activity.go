package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// maxCall bounds a call whose node has no timeout.
const maxCall = 30 * 24 * time.Hour

// openCall is a running call, whose action can call back into the run.
type openCall struct {
	ctx  context.Context
	host tea.Host
	// inner cancels the calls that the action made.
	inner []workflow.CancelFunc
}

// activity executes a call as an activity.
func (r *run) activity(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	v, err := req.Params.Shared()
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "parameters of %s: %w", req.Action, err)
	}
	params, err := sealed(v, r.wf.mask)
	if err != nil {
		return nil, err
	}
	if err := tooLarge("the parameter object", len(params), r.rt.task.stored); err != nil {
		return nil, err
	}
	c := call{Key: r.start.Key, Action: req.Action, Params: params, Call: req.Call}
	opened := &openCall{ctx: ctx, host: req.Host}
	r.open[req.IdempotencyKey] = opened
	defer func() {
		delete(r.open, req.IdempotencyKey)
		for _, cancel := range opened.inner {
			cancel()
		}
	}()
	var out answer
	err = r.schedule(ctx, c, &out)
	for _, n := range out.Notices {
		n.pass(ctx, req.Host)
	}
	result, err := out.value(ctx, r.wf.mask, err)
	if err != nil {
		return nil, err
	}
	return tea.Respond(result), nil
}

// schedule executes the activity of a call.
func (r *run) schedule(ctx context.Context, c call, out *answer) error {
	for {
		queue := r.queue(c.Action)
		c.Routed = queue != ""
		err := r.scheduleOn(ctx, queue, c, out)
		if err != nil || !out.Elsewhere {
			return err
		}
		r.elsewhere[r.wf.Action(c.Action).Bundle] = true
	}
}

func (r *run) scheduleOn(ctx context.Context, queue string, c call, out *answer) error {
	name, summary := activityName(c.Call.Node), c.Action+" at "+c.Call.Node
	retry := &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 10 * time.Second}
	if c.Call.Once {
		retry.MaximumAttempts = 1
	}
	*out = answer{}
	// A local activity is not recorded before the workflow task ends, so it can run twice.
	if r.start.Local && queue == "" && !c.Call.Once {
		done := r.rt.task.local(ctx)
		w := workflow.WithLocalActivityOptions(coroutine(ctx), workflow.LocalActivityOptions{ScheduleToCloseTimeout: maxCall, Summary: summary, RetryPolicy: retry})
		err := workflow.ExecuteLocalActivity(w, recordCall, &localCall{r.worker, r.wf, c}).Get(w, out)
		done(out.size())
		return err
	}
	r.rt.task.take(ctx, len(c.Params))
	w := workflow.WithActivityOptions(coroutine(ctx), workflow.ActivityOptions{
		TaskQueue: queue, StartToCloseTimeout: maxCall, HeartbeatTimeout: silentAfter, Summary: summary, RetryPolicy: retry,
	})
	return out.answered(workflow.ExecuteActivity(w, name, c).Get(w, out))
}

// queue returns the task queue of an action: the one in the section queues, or the queue of
// the plugin if some workers of the run's queue lack it; "" is the run's queue.
func (r *run) queue(action string) string {
	namespace, _, _ := strings.Cut(action, ".")
	bundle := r.wf.Action(action).Bundle
	for _, pattern := range []string{action, namespace + ".*", bundle + ".*", "*"} {
		if q, ok := r.wf.Queues()[pattern]; ok {
			return q.Name
		}
	}
	if r.elsewhere[bundle] {
		return pluginQueue(workflow.GetInfo(r.rt.root).TaskQueueName, bundle)
	}
	return ""
}

// pluginQueue is the queue of the workers that have a plugin.
func pluginQueue(queue, plugin string) string { return queue + "/" + plugin }

// activityName returns the name of the last node in a path, without indices.
func activityName(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if i := strings.IndexAny(name, "#[~!>"); i > 0 {
		name = name[:i]
	}
	switch name {
	case "recordOutcome", "recordCall": // local activities
		return name + " (node)"
	}
	return name
}

// act is the activity for all calls.
func (k *worker) act(ctx context.Context, args converter.EncodedValues) (answer, error) {
	var c call
	if err := args.Get(&c); err != nil {
		return answer{}, fmt.Errorf("read the call: %w", err)
	}
	info := activity.GetInfo(ctx)
	wf, err := k.workflows.fetched(ctx, k.client, c.Key, info.WorkflowExecution.ID, info.WorkflowExecution.RunID)
	if err != nil {
		return answer{}, err // another worker may have it
	}
	defer k.workflows.release(wf)
	out, err := k.local(ctx, wf, c)
	if err == nil && out.Failure != nil {
		return answer{}, shownFailure(out)
	}
	return out, err
}

// maxShown is the maximum length of the error messages that Temporal shows, in runes.
const maxShown = 500

// shown returns the start of a message. The server terminates a run if the message exceeds
// the size limit of values.
func shown(message string) string {
	runes := []rune(message)
	return string(runes[:min(len(runes), maxShown)])
}

// shownFailure makes the activity of a failed call fail, so that Temporal shows it as
// failed. The error carries the answer. The worker neither logs nor counts it: the run
// has the error, and may expect it.
func shownFailure(out answer) error {
	return temporal.NewApplicationErrorWithOptions(shown(out.Failure.Message), string(out.Failure.Type), temporal.ApplicationErrorOptions{
		NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign, Details: []any{out},
	})
}

// answered takes the answer from the error of an activity that carries one.
func (a *answer) answered(err error) error {
	var failed *temporal.ApplicationError
	if errors.As(err, &failed) && failed.NonRetryable() && failed.HasDetails() {
		err = failed.Details(a)
	}
	return err
}

// local executes a call in this process.
func (k *worker) local(ctx context.Context, wf *loaded, c call) (answer, error) {
	info := activity.GetInfo(ctx)
	switch {
	case !wf.IsElsewhere(c.Action):
	case c.Routed:
		return answer{}, fmt.Errorf("a worker of the queue %s does not have the plugin %s; install it there with `tea plugin install`, or stop that worker if others have it", info.TaskQueue, wf.Action(c.Action).Bundle)
	default:
		return answer{Elsewhere: true}, nil
	}
	params, err := unsealed(c.Params, wf.mask)
	if err != nil {
		return answer{}, err
	}
	h := &remoteHost{connection: k.connection, wf: wf, info: info, key: c.Call.IdempotencyKey, tokens: wf.mask.Stream()}
	if !info.IsLocalActivity {
		beating, stop := context.WithCancel(ctx)
		defer stop()
		go h.heartbeat(beating, c.Call)
	}
	res, err := wf.Invoke(ctx, k.workflows.secrets, &tea.Request{Action: c.Action, Params: tea.ValuePayload(params), Call: c.Call, Host: h})
	if ctx.Err() != nil && !info.IsLocalActivity {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			return answer{}, errors.New("the worker stops") // another worker repeats the call
		default:
		}
		if err != nil {
			return answer{}, ctx.Err()
		}
	}
	var out answer
	if err == nil && res == nil {
		err = tea.Errorf(tea.InternalError, "%s returned neither a result nor an error", c.Action)
	}
	if err == nil {
		var v any
		if v, err = res.Result.Shared(); err == nil {
			out, err = newAnswer(v, nil, wf.mask)
		}
	}
	if err != nil {
		if out, err = newAnswer(nil, err, wf.mask); err != nil {
			return answer{}, err
		}
	}
	out.Notices = h.end()
	out = limited(out, k.store != nil)
	if !info.IsLocalActivity {
		err = k.keep(ctx, h, out)
	}
	return out, err
}

// notice is a log record, a token or a progress report of an action.
type notice struct {
	Kind     string         `json:"kind"`
	Text     string         `json:"text"`
	Level    slog.Level     `json:"level,omitempty"`
	Fields   map[string]any `json:"fields,omitempty"`
	Fraction float64        `json:"fraction,omitempty"`
}

func (n *notice) pass(ctx context.Context, h tea.Host) {
	switch n.Kind {
	case "log":
		h.Log(ctx, n.Level, n.Text, n.Fields)
	case "token":
		h.Token(ctx, n.Text)
	case "progress":
		h.Progress(ctx, n.Fraction, n.Text)
	}
}

// remoteHost is the host of an action in an activity. Calls that change the run are
// updates of the Temporal workflow.
type remoteHost struct {
	*connection
	wf   *loaded
	info activity.Info
	key  string

	mu      sync.Mutex
	notices []notice
	tokens  *host.MaskStream
	ended   bool
	// waiting is the reason why the call is blocked.
	waiting string
	made    map[string]int
}

// hostRequest is the argument of the update host.
type hostRequest struct {
	Call   string          `json:"call"` // its idempotency key
	Method string          `json:"method"`
	Value  json.RawMessage `json:"value,omitempty"` // sealed
}

func (h *remoteHost) note(n notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		n.Text = h.wf.mask.Text(n.Text)
		h.notices = append(h.notices, n)
	}
}

// token adds a piece of text. MaskStream holds back its end if a secret may begin
// there.
func (h *remoteHost) token(text string) {
	if text != "" {
		h.notices = append(h.notices, notice{Kind: "token", Text: text})
	}
}

// end returns the notices, and ignores later ones.
func (h *remoteHost) end() []notice {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.token(h.tokens.End())
	}
	h.ended = true
	return h.notices
}

// ask sends an update to the run. A repeated activity gets the answers of its first
// attempt.
func (h *remoteHost) ask(ctx context.Context, method string, v any) (any, error) {
	if h.info.IsLocalActivity {
		return nil, tea.Errorf(tea.DependencyMissing, "an action that uses the run needs the durability sync on Temporal")
	}
	encoded, err := value.From(v)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%w", err)
	}
	raw, err := sealed(encoded, h.wf.mask)
	if err != nil {
		return nil, err
	}
	request := hostRequest{Call: h.key, Method: method, Value: raw}
	if err := h.checkSize("what the action passes to the run", request); err != nil {
		return nil, err
	}
	at := digest(method, string(raw))
	h.mu.Lock()
	if h.made == nil {
		h.made = map[string]int{}
	}
	h.made[at]++
	id := fmt.Sprintf("%s-%s-%d", h.info.ActivityID, at, h.made[at])
	h.mu.Unlock()
	handle, err := h.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: h.info.WorkflowExecution.ID, RunID: h.info.WorkflowExecution.RunID, UpdateID: id, UpdateName: hostUpdate,
		Args: []any{request}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	var out answer
	if err == nil {
		err = handle.Get(ctx, &out)
	}
	if err != nil && ctx.Err() == nil {
		return nil, tea.Errorf(tea.ConnectionError, "ask the run: %w", err)
	}
	return out.value(ctx, h.wf.mask, err)
}

// Invoke calls another action of the run.
func (h *remoteHost) Invoke(ctx context.Context, action string, params any) (*tea.Response, error) {
	payload := tea.AsPayload(params)
	v, err := payload.Shared()
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "parameters of %s: %w", action, err)
	}
	if action == "secrets.mask" {
		object, _ := v.(map[string]any)
		return tea.Respond(map[string]any{"success": true, "value": h.wf.mask.Value(object["value"])}), nil
	}
	result, err := h.ask(ctx, "invoke", map[string]any{"action": action, "params": v})
	return tea.Respond(result), err
}

// InvokeAs is Invoke with a key or templates.
func (h *remoteHost) InvokeAs(ctx context.Context, c tea.Invocation) (*tea.Response, error) {
	for _, v := range []*any{&c.Params, &c.Output} {
		payload := tea.AsPayload(*v) // a plugin process passes JSON
		var err error
		if *v, err = payload.Shared(); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "parameters of %s: %w", c.Action, err)
		}
	}
	result, err := h.ask(ctx, "invoke_as", c)
	return tea.Respond(result), err
}

// ReportUsage counts against the budget of the run.
func (h *remoteHost) ReportUsage(ctx context.Context, u tea.Usage) error {
	_, err := h.ask(ctx, "usage", u)
	return err
}

// Describe returns the description of an action.
func (h *remoteHost) Describe(_ context.Context, action string) (*tea.ActionInfo, error) {
	entry := h.wf.Action(action)
	if entry == nil {
		return nil, tea.Errorf(tea.NotFound, "unknown action %q", action)
	}
	return &entry.ActionInfo, nil
}

// Log, Token and Progress reach the run with the result of the call. Followers of the
// run get tokens earlier; see [live].
func (h *remoteHost) Log(_ context.Context, level slog.Level, message string, fields map[string]any) {
	h.note(logged(level, message, fields, h.wf.mask))
}

// logged returns the notice for a log record.
func logged(level slog.Level, message string, fields map[string]any, mask host.Mask) notice {
	v, _ := value.From(fields)
	object, _ := mask.Value(v).(map[string]any)
	return notice{Kind: "log", Level: level, Text: mask.Text(message), Fields: object}
}

// Token streams a piece of text.
func (h *remoteHost) Token(_ context.Context, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.token(h.tokens.Next(text))
	}
}

// Progress reports the progress of the call.
func (h *remoteHost) Progress(_ context.Context, fraction float64, message string) {
	h.note(notice{Kind: "progress", Text: message, Fraction: fraction})
}

// Note reads a durable note.
func (h *remoteHost) Note(ctx context.Context, key string) (tea.Payload, bool, error) {
	v, err := h.ask(ctx, "note", key)
	found, _ := v.(map[string]any)
	note, ok := found["note"]
	return tea.ValuePayload(note), ok, err
}

// SetNote stores a durable note.
func (h *remoteHost) SetNote(ctx context.Context, key string, note any) error {
	payload := tea.AsPayload(note)
	v, err := payload.Shared()
	if err != nil {
		return tea.Errorf(tea.ValidationError, "note %q: %w", key, err)
	}
	_, err = h.ask(ctx, "set_note", map[string]any{"key": key, "note": v})
	return err
}

// hostCall is the handler of the update hostUpdate.
func (r *run) hostCall(w workflow.Context, req hostRequest) (answer, error) {
	opened := r.open[req.Call]
	if opened == nil {
		return newAnswer(nil, tea.Errorf(tea.Canceled, "the call has ended"), r.wf.mask)
	}
	w, cancel := workflow.NewDisconnectedContext(w) // opened cancels it
	defer cancel()
	opened.inner = append(opened.inner, cancel)
	ctx := withCoroutine(opened.ctx, w)
	v, err := unsealed(req.Value, r.wf.mask)
	if err == nil {
		v, err = serve(ctx, opened.host, req.Method, v)
	}
	out, err := newAnswer(v, err, r.wf.mask)
	out = limited(out, r.rt.task.stored)
	r.rt.task.take(ctx, out.size())
	return out, err
}

// serve calls a method of the host of a call.
func serve(ctx context.Context, h tea.Host, method string, v any) (any, error) {
	args, _ := v.(map[string]any)
	text := func(key string) string { s, _ := args[key].(string); return s }
	result := func(res *tea.Response, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return res.Result.Shared()
	}
	switch method {
	case "invoke":
		return result(h.Invoke(ctx, text("action"), args["params"]))
	case "invoke_as":
		var c tea.Invocation
		if err := value.Into(v, &c); err != nil {
			return nil, err
		}
		return result((&tea.Request{Host: h}).Invoke(ctx, c))
	case "usage":
		var u tea.Usage
		if err := value.Into(v, &u); err != nil {
			return nil, err
		}
		return nil, (&tea.Request{Host: h}).Usage(ctx, u)
	case "note":
		key, _ := v.(string)
		note, found, err := h.Note(ctx, key)
		if err != nil || !found {
			return nil, err
		}
		content, err := note.Shared()
		return map[string]any{"note": content}, err
	case "set_note":
		return nil, h.SetNote(ctx, text("key"), args["note"])
	}
	return nil, tea.Errorf(tea.NotFound, "unknown method %q", method)
}
