package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// resumeName is the name of the tool that resumes runs.
const resumeName = "resume"

// resumeArgs are the arguments of the tool.
type resumeArgs struct {
	RunID       string         `json:"run_id" doc:"the id of the run"`
	Answers     map[string]any `json:"answers,omitempty" doc:"the answers, by the id of the question or the path of its node; null passes a stop before or after a node. Without answers, every stop is passed"`
	Input       map[string]any `json:"input,omitempty" doc:"merged into the state from which the run continues"`
	RetryFailed bool           `json:"retry_failed,omitempty" doc:"run failed branches and map items again"`
}

func resumeTool() *mcp.Tool {
	return &mcp.Tool{
		Name: resumeName, Title: "Resume a run",
		Description: "Continues a run that waits for answers, stopped or failed. What finished is not run again.",
		InputSchema: schema.Of[resumeArgs](), OutputSchema: outcomeSchema(),
	}
}

func (s *server) resume(ctx context.Context, req *mcp.CallToolRequest, given map[string]any) (*mcp.CallToolResult, error) {
	var args resumeArgs
	accepted, err := tea.NewParamCheck(schema.Of[resumeArgs]()).Accept(resumeName, tea.ValuePayload(given))
	if err == nil {
		err = accepted.Decode(&args)
	}
	if err != nil {
		return nil, err
	}
	c, contents, err := s.open(req, args.RunID)
	if err != nil {
		return nil, err
	}
	defer s.closeWorkflow(c.wf)
	pending, err := checkpoints.Pending(contents)
	if err != nil {
		return nil, err
	}
	answers, err := runview.AnswersTo(pending, args.Answers)
	if err != nil {
		return nil, err
	}
	run := contents.Header.RunID
	return c.run(ctx, func(ctx context.Context, o host.RunOptions) (*flow.Result, error) {
		o.Answers, o.Input, o.RetryFailed = answers, args.Input, args.RetryFailed
		return c.resume(ctx, run, o)
	}), nil
}

// resume continues a run. Interrupts without an answer remain.
func (c *call) resume(ctx context.Context, run string, o host.RunOptions) (*flow.Result, error) {
	o.Hold = true
	res, err := c.wf.Resume(ctx, run, o)
	if errors.Is(err, host.ErrWorkflowChanged) {
		err = fmt.Errorf("run %s: %w; on the machine of the server, `%s --migrate` continues it with the new one", run, host.ErrWorkflowChanged, c.s.svc.ResumeCommand(run))
	}
	return res, err
}

// open loads the workflow of a run for a call. The caller closes it.
func (s *server) open(req *mcp.CallToolRequest, run string) (*call, *checkpoints.Contents, error) {
	contents, err := s.contents(run)
	if err != nil {
		return nil, nil, err
	}
	info, err := host.FindRun(s.svc.Runs, contents.Header.RunID)
	if err != nil {
		return nil, nil, err
	}
	wf, err := s.svc.LoadRun(info, false)
	if err != nil {
		return nil, nil, err
	}
	mask, err := s.svc.Mask(wf)
	if err != nil {
		s.closeWorkflow(wf)
		return nil, nil, err
	}
	return &call{s: s, req: req, wf: wf, mask: mask}, contents, nil
}

// contents reads a run of a workflow of the directory by its complete id. A prefix
// would reveal which ids other workflows have.
func (s *server) contents(run string) (*checkpoints.Contents, error) {
	unknown := &unknownRunError{run}
	if !runview.ValidID(run) {
		return nil, unknown
	}
	runs, err := checkpoints.Open(s.svc.Runs)
	if err != nil {
		return nil, err
	}
	contents, err := runs.Show(run + ".tea")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	if !s.catalog.Owns(contents.Header.WorkflowFile) {
		return nil, unknown
	}
	return contents, nil
}

// unknownRunError reports a run that does not belong to the directory's workflows.
type unknownRunError struct{ run string }

func (e *unknownRunError) Error() string {
	return fmt.Sprintf("there is no run %.100q; the resource %s lists the runs", e.run, runsURI)
}
