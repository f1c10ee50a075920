//go:build !noplugins

package teacmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/develop"
	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
)

// scanInterval is the interval between two scans of a project's files.
const scanInterval = 300 * time.Millisecond

// Run rebuilds the plugin after each change until it is interrupted.
func (c *pluginDevCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	project, err := develop.Open(c.Dir)
	if err != nil {
		return usageError(err)
	}
	if c.Into == "" {
		c.Into = filepath.Join(c.Dir, "bin")
	}
	fmt.Fprintf(a.out, "%s: watching %s; use it with --plugins %s\n", project.Name, c.Dir, shellQuote(c.Into))
	ctx, stop := stoppable()
	defer stop(nil)
	loop := &develop.Loop{Project: project, Into: absolute(c.Into), Every: scanInterval, Check: checkPlugin, Report: func(o develop.Outcome) {
		took := o.Took.Round(10 * time.Millisecond)
		if o.Err == nil {
			o.Err = storeManifest(ctx, filepath.Dir(o.Program), o.Manifest.Name)
		}
		if o.Err != nil {
			stays := "the last good version stays"
			if _, err := os.Stat(o.Program); err != nil {
				stays = "there is no good version yet"
			}
			fmt.Fprintf(a.out, "%s: broken (%s); %s\n%s\n", project.Name, took, stays, indented(o.Err.Error()))
			return
		}
		outcome := "in place"
		if o.Unchanged {
			outcome = "unchanged"
		}
		fmt.Fprintf(a.out, "%s %s: %s (%s), %s\n", project.Name, o.Manifest.Version, outcome, took, numbered(len(o.Manifest.Actions), "action"))
	}}
	return loop.Run(ctx)
}

// checkPlugin starts a program as a host does and asks for its manifest.
func checkPlugin(ctx context.Context, program string) (tea.Manifest, error) {
	output := &lastOutput{}
	process, err := startAsHost(ctx, program, output)
	if err != nil {
		return tea.Manifest{}, fmt.Errorf("%w%s", err, output.note())
	}
	defer process.Close()
	return process.Manifest(), nil
}

// storeManifest stores the manifest of a plugin for commands that do not start it.
func storeManifest(ctx context.Context, dir, name string) (err error) {
	plugins, _, err := subproc.Discover(ctx, subproc.Options{Dirs: []string{dir}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plugins.Close()) }()
	for _, asked := range plugins.Refresh(ctx, false, name) {
		err = errors.Join(err, asked.Err)
	}
	return err
}

// indented returns a text with each line indented.
func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}
