package teacmd

import (
	"context"
	"encoding/json"

	"github.com/the-edge-agent/tea/client"
	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

type remoteRunCmd struct {
	Workflow string `arg:"" help:"Name of a workflow of the server."`
	Key      string `placeholder:"KEY" help:"Start one run only for commands with the same key."`
	remoteFlags
}

func (c *remoteRunCmd) Run(a *app) error {
	if isWorkflowFile(c.Workflow) {
		return usageErrorf("%s is a file; name a workflow of the server, which `%s` lists", c.Workflow, commandLine([]string{hostFlag, withoutPassword(a.server), "runs", "workflows"}))
	}
	return c.follow(a, "", func(ctx context.Context, server *client.Client, input map[string]any) (*client.Run, error) {
		start := client.Start{Key: c.Key}
		if input != nil {
			start.Input = input
		}
		return server.Start(ctx, c.Workflow, start)
	})
}

type remoteResumeCmd struct {
	RunID       string   `arg:"" name:"run" help:"Id of the run."`
	Answer      []string `sep:"none" placeholder:"ID=JSON" help:"Answer an interrupt, by its id or its node (repeatable)."`
	Pass        []string `sep:"none" placeholder:"ID|all|none" help:"Pass a stop before or after a node, by its id or its node (repeatable). Default: all, unless --answer is given."`
	RetryFailed bool     `help:"Run failed branches and map items again, and what follows them."`
	Migrate     bool     `help:"Resume with a changed workflow if everything that the run used still exists."`
	remoteFlags
}

func (c *remoteResumeCmd) Run(a *app) error {
	given, err := parseAnswers(c.Answer)
	if err != nil {
		return err
	}
	return c.follow(a, c.RunID, func(ctx context.Context, server *client.Client, input map[string]any) (*client.Run, error) {
		run, err := server.Run(ctx, c.RunID, false)
		if err != nil {
			return nil, err
		}
		res, err := resultOf(run)
		if err != nil {
			return nil, err
		}
		if c.Interactive && len(c.Pass) == 0 {
			c.Pass = []string{skipNone} // the user is asked about each
		}
		resume := client.Resume{RetryFailed: c.RetryFailed, Migrate: c.Migrate}
		if resume.Answers, err = answersTo(res.Pending, given, c.Pass); err != nil {
			return nil, err
		}
		if input != nil {
			resume.Input = input
		}
		return server.Resume(ctx, c.RunID, resume)
	})
}

type remoteForkCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run."`
	At    string `required:"" placeholder:"STEP" help:"Number of the last record to copy, or path of the node after which the fork begins."`
	remoteFlags
}

// Run forks a run of the server.
func (c *remoteForkCmd) Run(a *app) error {
	return c.follow(a, "", func(ctx context.Context, server *client.Client, input map[string]any) (*client.Run, error) {
		var given any
		if input != nil {
			given = input
		}
		return server.Fork(ctx, c.RunID, c.At, given, 0)
	})
}

type remoteRunsCmd struct {
	List      remoteListCmd      `cmd:"" default:"withargs" help:"List runs, the newest first (the default)."`
	Show      remoteShowCmd      `cmd:"" help:"Show the status of a run and what it waits for."`
	Events    remoteEventsCmd    `cmd:"" help:"Print a run's events as JSON lines, until it ends or waits."`
	Workflows remoteWorkflowsCmd `cmd:"" help:"List the workflows of the server."`
}

type remoteListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
	listFlags
	serverFlags
}

func (c *remoteListCmd) Run(a *app) error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	return c.with(a, func(s *serverRuns) error {
		s.filter, s.limit = client.Filter{Workflow: f.Workflow, Status: client.Status(f.Status), Trigger: c.Trigger, Search: f.Search, Since: f.Since, Until: f.Until}, c.Limit
		return a.listRuns(s, c.JSON)
	})
}

// serverRuns are the runs of a server.
type serverRuns struct {
	a      *app
	ctx    context.Context
	server *client.Client
	flags  *serverFlags
	filter client.Filter
	// limit is the maximum number of runs; 0 = no limit.
	limit int
}

// with calls do with the runs of the server. An interrupt cancels the context.
func (f *serverFlags) with(a *app, do func(*serverRuns) error) error {
	server, err := f.open(a)
	if err != nil {
		return err
	}
	defer server.Close()
	ctx, stop := stoppable()
	defer stop(nil)
	return serverError(do(&serverRuns{a: a, ctx: ctx, server: server, flags: f}))
}

func (s *serverRuns) list() (list []checkpoints.Entry, form any, err error) {
	all := []client.Run{}
	for run, err := range s.server.Runs(s.ctx, s.filter) {
		if err != nil {
			return nil, nil, err
		}
		all = append(all, run)
		if list = append(list, entryOf(&run)); len(list) == s.limit {
			break
		}
	}
	return list, all, nil
}

func entryOf(run *client.Run) checkpoints.Entry {
	return checkpoints.Entry{ID: run.ID, Workflow: run.Workflow, Status: flow.Status(run.Status), Node: run.Node, StartedAt: run.StartedAt, UpdatedAt: run.UpdatedAt, ParentRun: run.ParentRun, Question: run.Question}
}

func (s *serverRuns) show(id string) (*runView, error) {
	run, err := s.server.Run(s.ctx, id, false)
	if err != nil {
		return nil, err
	}
	res, err := resultOf(run)
	if err != nil {
		return nil, err
	}
	files, err := s.server.Files(s.ctx, id)
	if err != nil {
		files = nil // the run has not started, or its workflow cannot be read
	}
	list := make([]runview.File, len(files))
	for i, f := range files {
		list[i] = runview.File(f)
	}
	return &runView{form: run, run: &runOutput{
		Files: list,

		Entry: entryOf(run), Failure: checkpoints.Failure{Error: run.Error, Failures: res.Failures}, Pending: res.Pending, Notes: run.Notes,
		queued: run.QueuedBecause, parked: run.Parked,
		resume: (&remoteRun{a: s.a, flags: &remoteFlags{serverFlags: *s.flags}}).resumeCommand(res),
	}}, nil
}

func (s *serverRuns) events(id string, after int64, _ bool, fn func(line []byte) error) error {
	for e, err := range s.server.Events(s.ctx, id, after) {
		if err == nil {
			err = fn(e.JSON)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *serverRuns) node(id, name string) (*runview.Node, error) {
	node, err := s.server.Node(s.ctx, id, name)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(node)
	if err != nil {
		return nil, err
	}
	n := &runview.Node{}
	return n, json.Unmarshal(text, n)
}

type remoteShowCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run."`
	Node  string `placeholder:"NODE" help:"Show the last execution of a node, by its name or path: parameters, result, error, attempts, logs."`
	JSON  bool   `name:"json" help:"Print JSON."`
	serverFlags
}

func (c *remoteShowCmd) Run(a *app) error {
	return c.with(a, func(s *serverRuns) error {
		if c.Node != "" {
			return a.showNode(s, c.RunID, c.Node, c.JSON)
		}
		return a.showRun(s, c.RunID, c.JSON)
	})
}

type remoteEventsCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run."`
	After int64  `placeholder:"SEQ" help:"Omit the events up to this number."`
	serverFlags
}

func (c *remoteEventsCmd) Run(a *app) error {
	return c.with(a, func(s *serverRuns) error { return a.printEvents(s, c.RunID, c.After, true) })
}

type remoteWorkflowsCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
	serverFlags
}

func (c *remoteWorkflowsCmd) Run(a *app) error {
	return c.with(a, func(s *serverRuns) error {
		list, _, err := s.server.Workflows(s.ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(a.stdout, list)
		}
		var rows [][]string
		for _, w := range list {
			rows = append(rows, []string{w.Name, w.Description})
		}
		return a.table([]string{"WORKFLOW", "DESCRIPTION"}, rows)
	})
}
