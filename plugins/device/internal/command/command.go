package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

const (
	settingsKey = "command"
	allowPath   = "settings.command.allow"
)

// Settings are the settings under settings.command.
type Settings struct {
	Allow map[string]Command `json:"allow,omitempty" doc:"the commands that can be run, by name"`
}

// Command is a command that workflows can run.
type Command struct {
	Argv           []string          `json:"argv" minItems:"1" keyOf:"params" keyPattern:"\\{([a-z][a-z0-9_]*)\\}" doc:"the program, looked up in PATH, and its arguments; {name} stands for a parameter"`
	Params         map[string]Param  `json:"params,omitempty" doc:"the parameters"`
	Env            map[string]string `json:"env,omitempty" secret:"true" doc:"its environment besides PATH and LANG"`
	Dir            string            `json:"dir,omitempty" format:"path" doc:"its working directory; default: the root directory"`
	Stdin          bool              `json:"stdin,omitempty" doc:"lets a workflow pass its standard input"`
	TimeoutSeconds float64           `json:"timeout_seconds,omitempty" default:"30" minimum:"0.1" maximum:"86400" doc:"limit for its time; then it is killed with the processes that it has started"`
	MaxOutputBytes int               `json:"max_output_bytes,omitempty" default:"65536" minimum:"0" maximum:"4194304" doc:"limit for each of its outputs; the rest is dropped"`
	Success        []int             `json:"success,omitempty" doc:"exit codes that are a success; default 0"`
	User           string            `json:"user,omitempty" doc:"user to run it as, with the user's groups; tea must run as root (Linux)"`
	NoNetwork      bool              `json:"no_network,omitempty" doc:"runs it in its own network namespace (Linux)"`
	NewPrivileges  bool              `json:"new_privileges,omitempty" doc:"lets it get more rights than tea has, for example through sudo (Linux)"`
	guard.Limits
}

// waitDelay bounds the wait for the outputs of a command that has ended.
const waitDelay = 2 * time.Second

// Part returns the part of the bundle.
func Part() part.Part {
	return part.New(settingsKey, func(s Settings, guards *guard.Guards) any { return &client{s, guards} },
		part.Action(settingsKey, "run", "Runs a command that the settings allow.", (*client).Run, tea.Once(), tea.DryRun()))
}

// client runs the commands of a workflow.
type client struct {
	settings Settings
	guards   *guard.Guards
}

// Check returns a mistake in the settings that the schema cannot express.
func (s Settings) Check() error {
	return part.Check(allowPath, s.Allow, func(_ string, command Command) error {
		return command.checkArguments()
	})
}

type runParams struct {
	Command string         `json:"command" doc:"name of the command in settings.command.allow"`
	Params  map[string]any `json:"params,omitempty" doc:"the values of its parameters"`
	Stdin   *string        `json:"stdin,omitempty" doc:"its standard input, if the settings allow it"`
}

type runResult struct {
	Success   bool   `json:"success" doc:"always true: an exit code that is not a success is an error of type command_failed"`
	ExitCode  int    `json:"exit_code"`
	Stdout    string `json:"stdout" doc:"standard output; bytes that are not UTF-8 are replaced"`
	Stderr    string `json:"stderr" doc:"standard error"`
	Truncated bool   `json:"truncated" doc:"whether an output was longer than max_output_bytes"`
	DryRun    bool   `json:"dry_run" doc:"true if it was not run because of dry_run in the settings"`
}

func (c *client) Run(ctx context.Context, req *tea.Request, p runParams) (*runResult, error) {
	command, err := part.Entry(allowPath, "command", c.settings.Allow, p.Command)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	args, err := command.arguments(p.Params)
	if err == nil && p.Stdin != nil && !command.Stdin {
		err = guard.Limit("stdin is not allowed: the settings of the command do not have stdin: true")
	}
	if err != nil {
		return nil, guard.Invalid(fmt.Sprintf("command %q", p.Command), err)
	}
	result := &runResult{Success: true}
	result.DryRun, err = c.guards.Permit(ctx, req, guard.Write{
		Setting: diag.Key(allowPath, p.Command), Machine: command.Argv[0], Target: fmt.Sprintf("the command %q", p.Command),
		Rule: &guard.Rule{Limits: command.Limits}, Shown: shown(command.Argv[0], args, p.Stdin),
	}, func(ctx context.Context) error { return command.run(ctx, p, args, result) })
	return result, err
}

// shown returns a command as a JSON list for messages.
func shown(program string, args []string, stdin *string) string {
	list, _ := value.From(append([]string{program}, args...)) // strings never fail
	text, _ := value.Encode(list)
	if stdin != nil {
		return fmt.Sprintf("%s with %d bytes of input", text, len(*stdin))
	}
	return string(text)
}

// run runs the command and fills the result.
func (c Command) run(ctx context.Context, p runParams, args []string, result *runResult) error {
	limited, cancel := context.WithTimeout(ctx, part.Seconds(c.TimeoutSeconds))
	defer cancel()
	stdout, stderr := &output{limit: c.MaxOutputBytes}, &output{limit: c.MaxOutputBytes}
	cmd := exec.CommandContext(limited, c.Argv[0], args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, waitDelay
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		cmd.Env = append(cmd.Env, name+"="+c.Env[name])
	}
	cmd.Dir = cmp.Or(c.Dir, string(os.PathSeparator))
	if p.Stdin != nil {
		cmd.Stdin = strings.NewReader(*p.Stdin)
	}
	started, err := c.execute(cmd)
	result.Stdout, result.Stderr, result.Truncated = stdout.text(), stderr.text(), stdout.dropped || stderr.dropped
	if !started {
		return guard.NotSent(startError(p.Command, err))
	}
	result.ExitCode = cmd.ProcessState.ExitCode()
	return c.outcome(ctx, limited, p.Command, err, result)
}

// startError returns the error for a command that did not start.
func startError(name string, err error) error {
	kind := tea.AsError(err).Type // for example, the call has been canceled
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		kind = tea.NotFound
	case errors.Is(err, fs.ErrPermission):
		kind = tea.PermissionDenied
	}
	return tea.Errorf(kind, "command %q did not start: %w", name, err)
}

// failed is the type of the error of a command whose exit code is not a success.
const failed tea.ErrorType = "command_failed"

// outcome returns the error for the end of a command.
func (c Command) outcome(ctx, limited context.Context, name string, err error, r *runResult) error {
	codes := c.Success
	if codes == nil {
		codes = []int{0}
	}
	var e *tea.Error
	switch {
	case ctx.Err() != nil:
		e = tea.Errorf(tea.AsError(ctx.Err()).Type, "command %q was killed, because the call has ended", name)
	case limited.Err() != nil:
		e = tea.Errorf(tea.Timeout, "command %q was killed, because it did not end in time (timeout_seconds)", name)
	case r.ExitCode >= 0 && slices.Contains(codes, r.ExitCode):
		return nil
	case r.ExitCode < 0:
		e = tea.Errorf(failed, "command %q was ended by a signal: %w", name, err)
	default:
		e = tea.Errorf(failed, "command %q ended with exit code %d: %s", name, r.ExitCode, cmp.Or(lastLine(r.Stderr), lastLine(r.Stdout), "no output"))
	}
	e.Details = map[string]any{"exit_code": int64(r.ExitCode), "stdout": r.Stdout, "stderr": r.Stderr}
	if ctx.Err() == nil && limited.Err() == nil && r.ExitCode >= 0 {
		return guard.Failed(e)
	}
	return guard.Unknown(e)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// output keeps the beginning of an output.
type output struct {
	limit   int
	kept    []byte
	dropped bool
}

func (o *output) Write(p []byte) (int, error) {
	keep := p[:min(len(p), o.limit-len(o.kept))]
	o.kept = append(o.kept, keep...)
	o.dropped = o.dropped || len(keep) < len(p)
	return len(p), nil
}

func (o *output) text() string {
	kept := o.kept
	if o.dropped {
		kept = kept[:value.WholeRunes(string(kept))]
	}
	return strings.ToValidUTF8(string(kept), "\uFFFD")
}
