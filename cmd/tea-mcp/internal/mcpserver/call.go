package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// stopped is the cancellation cause of a run that the server stops.
type stopped struct{ by string }

func (s *stopped) Error() string { return "stopped by " + s.by }

// Unwrap classifies the error as canceled.
func (s *stopped) Unwrap() error { return context.Canceled }

var (
	errClosed   = &stopped{"the end of the MCP server"}
	errCanceled = &stopped{"the MCP client"}
)

// begin reserves a place for a call. ctx is done when the client cancels the
// call or the server stops. The caller calls end.
func (s *server) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.ctx.Err() != nil {
		return nil, nil, errors.New("the server is stopping")
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return nil, nil, fmt.Errorf("too many calls are running (limit %d); try again when one has ended", maxCalls)
	}
	s.calls.Add(1)
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	byClient := context.AfterFunc(ctx, func() { cancel(errCanceled) })
	byServer := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return run, func() {
		byClient()
		byServer()
		cancel(nil)
		<-s.slots
		s.calls.Done()
	}, nil
}

// tool returns the handler of a tool. A request with a state resumes the run whose
// questions the client has answered.
func (s *server) tool(do func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error)) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, end, err := s.begin(ctx)
		if err != nil {
			return failure(err), nil
		}
		defer end()
		if req.Params.RequestState != "" {
			return s.continueRun(ctx, req), nil
		}
		given, err := arguments(req)
		if err != nil {
			return failure(err), nil
		}
		result, err := do(ctx, req, given)
		if err != nil {
			return failure(err), nil
		}
		return result, nil
	}
}

// call runs the workflow of a tool.
func (s *server) call(ctx context.Context, req *mcp.CallToolRequest, input map[string]any) (*mcp.CallToolResult, error) {
	o, release, ok := s.catalog.use(req.Params.Name)
	if !ok {
		return nil, fmt.Errorf("the workflow %s is no longer offered", req.Params.Name)
	}
	defer release()
	c := &call{s: s, req: req, wf: o.Workflow, mask: o.mask}
	return c.run(ctx, func(ctx context.Context, opts host.RunOptions) (*flow.Result, error) {
		opts.Input = input
		return o.Run(ctx, opts)
	}), nil
}

// arguments returns the arguments of a call in the value model.
func arguments(req *mcp.CallToolRequest) (map[string]any, error) {
	if len(req.Params.Arguments) == 0 {
		return map[string]any{}, nil
	}
	v, err := value.Decode(req.Params.Arguments)
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	object, ok := v.(map[string]any)
	if v == nil {
		return map[string]any{}, nil
	}
	if !ok {
		return nil, fmt.Errorf("arguments: expected an object, got %s", value.TypeName(v))
	}
	return object, nil
}

// failure is the result of a call that did not start a run.
func failure(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}
}

// starter begins or continues a run.
type starter func(ctx context.Context, o host.RunOptions) (*flow.Result, error)

// call is a call of a tool that runs a workflow.
type call struct {
	s    *server
	req  *mcp.CallToolRequest
	wf   *host.Workflow
	mask host.Mask
	// declined has the reasons for questions that the user does not answer;
	// problem is about an invalid answer.
	declined map[string]string
	problem  string
}

// maxRounds is how often the user is asked during one call. The tool resume
// answers the remaining questions.
const maxRounds = 20

// run executes the workflow, asks the user what the run waits for, and
// continues it with the answers.
func (c *call) run(ctx context.Context, start starter) *mcp.CallToolResult {
	for round := 1; ; round++ {
		res, err := c.execute(ctx, start)
		if res == nil {
			return failure(errors.New(c.mask.Text(err.Error())))
		}
		if res.Status != flow.Waiting || round > maxRounds {
			return c.result(res, err, "")
		}
		asked := c.ask(ctx, res)
		if asked.result != nil {
			return asked.result
		}
		if !asked.answered {
			return c.result(res, err, asked.note)
		}
		start = c.resumeWith(res.RunID, asked.answers)
	}
}

// resumeWith resumes a run with answers by interrupt id.
func (c *call) resumeWith(run string, answers map[string]any) starter {
	return func(ctx context.Context, o host.RunOptions) (*flow.Result, error) {
		o.Answers = answers
		return c.resume(ctx, run, o)
	}
}

// execute starts the run and sends its progress to the client.
func (c *call) execute(ctx context.Context, start starter) (*flow.Result, error) {
	n := newNotifier(ctx, c.req)
	defer n.close()
	var id string
	res, err := c.s.svc.Execute(ctx, c.wf, host.RunOptions{Events: func(e flow.Event) {
		if e.Type == flow.EventRunStart {
			id = e.RunID
			c.s.svc.Log.Info("run started", "workflow", c.wf.Name(), "run", id)
		}
		n.event(e)
	}}, start)
	switch {
	case res == nil:
		c.s.svc.Log.Warn("call of "+c.req.Params.Name+" failed", "error", c.mask.Text(err.Error()))
	case res.Status == flow.Stopped:
		c.s.svc.Log.Warn(fmt.Sprintf("run %s of %s stopped; resume it with `%s`", res.RunID, c.wf.Name(), c.s.svc.ResumeCommand(res.RunID)), "error", c.mask.Text(fmt.Sprint(res.Err)))
	default:
		c.s.svc.Log.Info("run ended", "run", id, "status", string(res.Status))
	}
	return res, err
}

// outcome is the result of a call as clients see it.
type outcome struct {
	RunID     string          `json:"run_id"`
	Status    flow.Status     `json:"status"`
	State     json.RawMessage `json:"state,omitempty"`
	Pending   []any           `json:"pending,omitempty"`
	Error     string          `json:"error,omitempty"`
	ErrorType tea.ErrorType   `json:"error_type,omitempty"`
	Failures  []flow.Failure  `json:"failures,omitempty"`
	// FailedBranches can exceed the number of failures, which is bounded.
	FailedBranches int    `json:"failed_branches,omitempty"`
	Note           string `json:"note,omitempty"`
}

// outcomeSchema is the schema of outcome.
func outcomeSchema() map[string]any {
	text := func(doc string) any { return map[string]any{"type": "string", "description": doc} }
	return map[string]any{
		"type": "object",
		"properties": map[string]any{
			"run_id":          text("the id of the run, for the tool resume"),
			"status":          map[string]any{"type": "string", "enum": []any{"done", "waiting", "failed", "stopped"}, "description": "waiting: the run has questions, see pending; stopped: it can be resumed"},
			"state":           map[string]any{"type": "object", "description": "the state of the run: final when it has ended, otherwise the current one"},
			"pending":         map[string]any{"type": "array", "items": map[string]any{"type": "object"}, "description": "what the run waits for: the answers of the tool resume name the id of each"},
			"error":           text("why the run failed or stopped"),
			"error_type":      text("the type of the error"),
			"failures":        map[string]any{"type": "array", "items": map[string]any{"type": "object"}, "description": "the nodes and branches that failed"},
			"failed_branches": map[string]any{"type": "integer", "description": "how many branches and items of maps failed"},
			"note":            text("what to do next, or what is missing in this result"),
		},
		"required": []any{"run_id", "status"},
	}
}

// maxState is the maximum size of a state in a result, as JSON.
const maxState = 1 << 20

// result describes the outcome of a run. lost is an error besides the run's own.
func (c *call) result(res *flow.Result, lost error, note string) *mcp.CallToolResult {
	out := outcome{RunID: res.RunID, Status: res.Status, Failures: runview.MaskedFailures(c.mask, res.Failures), FailedBranches: res.FailedBranches, Note: note}
	var omitted string
	out.State, omitted = encodeState(c.mask, res.State)
	out.add(omitted)
	for _, i := range res.Pending {
		out.Pending = append(out.Pending, runview.Describe(c.mask, i))
	}
	switch err := errors.Join(res.Err, lost); {
	case err != nil:
		out.Error = c.mask.Text(err.Error())
		var typed *tea.Error
		if errors.As(err, &typed) {
			out.ErrorType = typed.Type
		}
	case res.Status == flow.Waiting:
		out.add("the run waits; call the tool " + resumeName + " with run_id and answers")
	}
	if res.Status == flow.Stopped || res.Status == flow.Failed {
		out.add("the tool " + resumeName + " continues the run")
	}
	return out.toResult(res.Status == flow.Failed || res.Status == flow.Stopped || lost != nil)
}

func (o *outcome) add(note string) {
	if o.Note != "" && note != "" {
		o.Note += "; "
	}
	o.Note += note
}

// toResult returns the outcome as structured content and as text.
func (o *outcome) toResult(failed bool) *mcp.CallToolResult {
	text, err := json.Marshal(o)
	if err != nil {
		return failure(fmt.Errorf("encode the result: %w", err))
	}
	return &mcp.CallToolResult{
		IsError: failed, StructuredContent: json.RawMessage(text), Content: []mcp.Content{&mcp.TextContent{Text: string(text)}},
	}
}

// encodeState returns a state as JSON with masked secrets; nil, with a note, if it
// is too large.
func encodeState(mask host.Mask, state map[string]any) (raw json.RawMessage, note string) {
	if state == nil {
		return nil, ""
	}
	raw, err := value.Encode(mask.Value(state))
	switch {
	case err != nil:
		return nil, "the state cannot be encoded: " + mask.Text(err.Error())
	case len(raw) > maxState:
		return nil, fmt.Sprintf("the state has %d bytes and is not in this result, which has room for %d; the workflow can write large data to a file", len(raw), maxState)
	}
	return raw, ""
}
