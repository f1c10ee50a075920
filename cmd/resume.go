package teacmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

type resumeCmd struct {
	RunID       string   `arg:"" name:"run" help:"Id of the run or the beginning of it, the file of its checkpoint, or a workflow file for its newest run that can be resumed."`
	Answer      []string `sep:"none" placeholder:"ID=JSON" help:"Answer an interrupt, by its id or its node (repeatable)."`
	Pass        []string `sep:"none" placeholder:"ID|all|none" help:"Pass a stop before or after a node, by its id or its node (repeatable). Default: all, unless --answer is given."`
	RetryFailed bool     `help:"Run failed branches and map items again, and what follows them."`
	Force       bool     `help:"Resume although the workflow has changed."`
	Migrate     bool     `help:"Resume with a changed workflow if everything that the run used still exists."`
	workflowFlag
	configFlag
	runFlags
}

// workflowFlag names the workflow of an existing run.
type workflowFlag struct {
	Workflow string `placeholder:"FILE" help:"Workflow file of the run. Default: the original path, or a file with the same digest near it, in the working directory or in the checkpoint directory."`
}

func (c *resumeCmd) Run(a *app) error {
	given, err := parseAnswers(c.Answer)
	if err != nil {
		return err
	}
	if remote, err := c.remotely(a, given); remote {
		return err
	}
	dir, run, runs, err := c.openRun(a, c.RunID, c.RetryFailed)
	if err != nil {
		return err
	}
	answers, err := c.answers(runs, run, given)
	if err != nil {
		return err
	}
	if c.Workflow == "" && isFile(c.RunID) && isWorkflowFile(c.RunID) {
		c.Workflow = c.RunID
	}
	load := a.loadOf(dir.path, run, host.LoadRunOptions{File: c.Workflow, Changed: c.Force || c.Migrate, Config: c.Config})
	return a.continueRun(&c.runFlags, dir.path, load, func(ctx context.Context, wf *host.Workflow, o host.RunOptions) (*flow.Result, error) {
		o.Answers, o.RetryFailed, o.Force, o.Migrate = answers, c.RetryFailed, c.Force, c.Migrate
		return wf.Resume(ctx, run, o)
	})
}

// remotely resumes the run on the engine of the flags. ok is false if the flags select
// this process.
func (c *resumeCmd) remotely(a *app, given map[string]any) (ok bool, err error) {
	run, idErr := remoteID(c.RunID)
	var pending []flow.Interrupt
	changed := host.LoadOptions{Config: c.Config, Remote: true}
	if c.Workflow != "" {
		a.workflows = append(a.workflows, c.Workflow)
	}
	return a.onEngine(&c.runFlags, func(h *host.Host, _ map[string]any) (*host.Workflow, error) {
		switch {
		case idErr != nil:
			return nil, idErr
		case (c.Force || c.Migrate) != (c.Workflow != "") || c.Config != "" && c.Workflow == "":
			return nil, usageErrorf("a run on Temporal keeps its workflow; to replace it, use --workflow FILE with --migrate or --force")
		case c.Workflow != "":
			return h.Load(c.Workflow, changed)
		}
		wf, waiting, err := a.engine.Find(c.EngineFlags, h, run)
		pending = waiting
		return wf, err
	}, func(e Engine, ctx context.Context, job Job) (*flow.Result, error) {
		answers, err := answersTo(pending, given, c.Pass)
		if err != nil {
			return nil, err
		}
		job.Options.Answers, job.Options.RetryFailed = answers, c.RetryFailed
		job.Load, job.Options.Force, job.Options.Migrate = changed, c.Force, c.Migrate
		return e.Resume(ctx, c.EngineFlags, run, job)
	})
}

// answers returns the answers in the flags to the interrupts of the run.
func (c *resumeCmd) answers(runs *checkpoints.Dir, run string, given map[string]any) (map[string]any, error) {
	entry, err := runs.Entry(run)
	if err != nil {
		return nil, err
	}
	if entry.Status == flow.Done && c.Input != "" && !c.RetryFailed {
		return nil, usageErrorf("run %s is done: --input has no effect; use `tea fork` to continue from one of its steps", entry.ID)
	}
	contents, err := runs.Show(run)
	if err != nil {
		return nil, err
	}
	pending, err := checkpoints.Pending(contents)
	if err != nil {
		return nil, err
	}
	if c.Interactive && len(c.Pass) == 0 {
		c.Pass = []string{skipNone} // the user is asked about each
	}
	return answersTo(pending, given, c.Pass)
}

// continueRun continues a run of a directory.
func (a *app) continueRun(f *runFlags, dir string, load loader, start starter) error {
	return a.execute(f, load, func(ctx context.Context, wf *host.Workflow, o host.RunOptions) (*flow.Result, error) {
		o.CheckpointDir, o.Hold = dir, true
		return start(ctx, wf, o)
	})
}

// loadOf returns a loader for the workflow of a run.
func (a *app) loadOf(dir, run string, o host.LoadRunOptions) loader {
	info, err := host.FindRun(dir, run)
	if err == nil {
		a.workflows = append(a.workflows, info.WorkflowFile)
	}
	if o.File != "" {
		a.workflows = append(a.workflows, o.File)
	}
	return func(h *host.Host, secrets map[string]any) (*host.Workflow, error) {
		if err != nil {
			return nil, err
		}
		a.embedded.at(info.WorkflowFile)
		o.Secrets = secrets
		wf, err := h.LoadRun(info, o)
		if gone := (*host.WorkflowNotFoundError)(nil); errors.As(err, &gone) {
			return nil, &exitError{exitInvalid, fmt.Errorf("%w; name the file with --workflow FILE", err)}
		}
		return wf, err
	}
}

// runDir is a directory of runs.
type runDir struct {
	path string
	// given is the path that the user named, "" for the default one.
	given string
}

// tea returns a command line for the directory.
func (d runDir) tea(words ...string) string {
	if d.given != "" {
		words = append(words, "-c", d.given)
	}
	return commandLine(words)
}

// open opens the directory. The error of a run that is not in it contains the
// command that lists the runs.
func (d runDir) open(run string) (*checkpoints.Dir, error) {
	runs, err := checkpoints.Open(d.path)
	if err == nil {
		_, err = runs.Entry(run)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no run %q in %s; `%s` lists the runs there", run, absolute(d.path), d.tea("runs"))
	}
	return runs, err
}

// openRun finds a run by the name that the user passed, and opens its directory.
// Afterwards the flags name that directory.
func (f *runFlags) openRun(a *app, name string, retry bool) (dir runDir, run string, runs *checkpoints.Dir, err error) {
	if dir, run, err = a.findRun(f.CheckpointDir, name, retry); err == nil {
		f.CheckpointDir = dir.given
		runs, err = dir.open(run)
	}
	return dir, run, runs, err
}

// findRun returns the directory of the run that the user named, and the run's id or the
// path of its file.
func (a *app) findRun(given, run string, retry bool) (runDir, string, error) {
	if !isWorkflowFile(run) && (isFile(run) || strings.ContainsRune(run, filepath.Separator)) {
		dir := filepath.Dir(run)
		return runDir{dir, dir}, dir + string(filepath.Separator) + filepath.Base(run), nil
	}
	dir := runDir{given, given}
	if given == "" {
		var err error
		if dir.path, err = a.defaultRunDir(); err != nil {
			return dir, "", err
		}
	}
	if isWorkflowFile(run) {
		id, err := a.newestOpenRun(dir.path, run, retry)
		return dir, id, err
	}
	return dir, run, nil
}

// isWorkflowFile reports whether the name of a run is a workflow file.
func isWorkflowFile(run string) bool {
	ext := filepath.Ext(run) // an id has no extension
	return ext == ".yaml" || ext == ".yml"
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// newestOpenRun finds the newest run of a workflow file that can be resumed: a
// run of the file itself by any path, or of the same content if the original
// file no longer exists. With retry, a run that is done can be resumed if a
// branch failed.
func (a *app) newestOpenRun(dir, file string, retry bool) (string, error) {
	here, err := os.Stat(file)
	_, contained := a.embedded.read(absolute(file)) // its runs may be in any directory
	if err != nil && !contained {
		return "", &exitError{exitInvalid, unreadable(file, err)}
	}
	list, err := listRuns(dir)
	if err != nil {
		return "", err
	}
	for _, r := range list {
		if r.Status == "" || r.Status == flow.Running || r.Status == flow.Done && !(retry && r.FailedBranches > 0) {
			continue
		}
		if contained && filepath.Base(r.WorkflowFile) == filepath.Base(file) {
			return r.ID, nil
		}
		there, err := os.Stat(r.WorkflowFile)
		if err == nil && os.SameFile(here, there) {
			return r.ID, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if info, err := host.FindRun(dir, r.ID); err == nil && info.Has(file) {
			return r.ID, nil
		}
	}
	return "", fmt.Errorf("no run of %s in %s can be resumed", file, dir)
}

// listRuns lists the runs of a directory. A missing directory has none.
func listRuns(dir string) ([]checkpoints.Entry, error) {
	runs, err := checkpoints.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return runs.List()
}

type forkCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run or the beginning of it, or the file of its checkpoint."`
	At    string `required:"" placeholder:"STEP" help:"Number of the last record to copy, or path of the node after which the fork begins."`
	workflowFlag
	configFlag
	runFlags
}

// Run forks a run.
func (c *forkCmd) Run(a *app) error {
	if _, err := c.remote(a); err != nil {
		return err
	}
	if c.DryRun {
		return usageErrorf("--dry-run: a fork writes a checkpoint; use tea resume --dry-run")
	}
	dir, run, runs, err := c.openRun(a, c.RunID, false)
	if err != nil {
		return err
	}
	at, err := runs.Step(run, c.At)
	if err != nil {
		return noStep(err, dir, run)
	}
	load := a.loadOf(dir.path, run, host.LoadRunOptions{File: c.Workflow, Config: c.Config})
	err = a.continueRun(&c.runFlags, dir.path, load, func(ctx context.Context, wf *host.Workflow, o host.RunOptions) (*flow.Result, error) {
		return wf.Fork(ctx, run, at, o)
	})
	if errors.Is(err, host.ErrInputUnused) {
		return usageErrorf("fork at %s: %w; `%s` lists earlier steps", c.At, host.ErrInputUnused, dir.tea("checkpoint", "show", run))
	}
	return err
}

// noStep adds the command that lists the steps of a run to an error.
func noStep(err error, dir runDir, run string) error {
	if errors.Is(err, checkpoints.ErrNoStep) {
		return fmt.Errorf("%w; `%s` lists its records", err, dir.tea("checkpoint", "show", run))
	}
	return err
}
