package teacmd

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// The exit codes. docs/reference/cli.md explains them.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitInvalid = 3
	exitBudget  = 4
	exitPlugin  = 6
	exitStopped = 130
)

// exitError ends the program with a code. err is printed; nil if the user has
// already seen a message.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usageError(err error) error { return &exitError{exitUsage, err} }

func usageErrorf(format string, args ...any) error { return usageError(fmt.Errorf(format, args...)) }

func pluginError(err error) error { return &exitError{exitPlugin, err} }

// exitCode prints the error and returns the exit code. Lost output counts as an
// error.
func (a *app) exitCode(err error) int {
	defer a.report.Close()
	code := a.explain(err)
	if lost := a.stdout.lost(); lost != nil && !errors.Is(err, lost) {
		a.printError(fmt.Errorf("the output is incomplete: %w", lost))
		code = max(code, exitFailed)
	}
	return code
}

// explain prints the error of a command and returns its exit code.
func (a *app) explain(err error) int {
	var (
		exit  *exitError
		diags host.Diagnostics
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &diags):
		if host.LacksPlugins(diags) {
			a.explainMissing()
		}
		a.report.Diagnostics(diags)
		return a.exitCodeFor(diags)
	case errors.As(err, &exit):
		if exit.err != nil {
			a.printError(err)
		}
		return exit.code
	}
	a.printError(err)
	return exitFailed
}

// exitCodeFor returns the exit code for an invalid workflow. If only actions
// are missing and a plugin is broken, it is the code of a plugin error.
func (a *app) exitCodeFor(diags host.Diagnostics) int {
	if a.needsPlugin() && host.LacksPlugins(diags) {
		return exitPlugin
	}
	return exitInvalid
}

// needsPlugin reports whether a plugin cannot be used.
func (a *app) needsPlugin() bool {
	return a.broken || a.plugins != nil && len(a.plugins.failed()) > 0
}

// explainMissing prints the plugin problems that were not logged, which can be
// the reason for a missing action.
func (a *app) explainMissing() {
	log := slog.New(newLineHandler(maskedWriter{a}, slog.LevelWarn))
	for _, p := range a.problems {
		if a.quiet || p.quiet {
			p.log(log)
		}
	}
	if a.quiet && a.plugins != nil {
		for _, err := range a.plugins.failed() {
			log.Warn("plugin problem: " + err.Error())
		}
	}
}

func (a *app) printError(err error) {
	fmt.Fprintf(a.report, "tea: error: %s\n", a.mask.Text(err.Error()))
}

// codeOf returns the exit code for the result of a run.
func codeOf(res *flow.Result) int {
	var (
		budget  *flow.BudgetError
		failure *tea.Error
	)
	switch {
	case res.Status == flow.Done:
		return exitDone
	case errors.As(res.Err, &budget):
		return exitBudget
	case res.Status == flow.Waiting, res.Status == flow.Stopped:
		return exitStopped
	case errors.As(res.Err, &failure) && failure.Type == tea.PluginCrashed, errors.As(res.Err, new(interface{ PluginFault() })):
		return exitPlugin
	}
	return exitFailed
}
