package main

import (
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/cmd/tea/internal/flowtest"
	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

type testCmd struct {
	Files []string `arg:"" name:"file" help:"Files of tests."`
	pluginFlags
	reportFlags
}

// Run runs the tests of each file and prints what failed, as go test does.
func (c *testCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	ctx, stop := stoppable()
	defer stop(nil)
	newHost := func(replace []tea.Action) (*host.Host, error) {
		return a.openHost(c.pluginFlags, c.reportFlags, host.Options{Replace: replace})
	}
	failed := false
	for _, file := range c.Files {
		suite, err := flowtest.Load(file)
		if err != nil {
			return usageError(err)
		}
		good := true
		err = suite.Run(ctx, newHost, func(o flowtest.Outcome) {
			good = good && len(o.Failures) == 0
			c.tell(a, o)
		})
		if err != nil {
			return err
		}
		verdict := "ok  "
		if !good {
			verdict, failed = "FAIL", true
		}
		fmt.Fprintf(a.out, "%s  %s  %s\n", verdict, file, numbered(len(suite.Tests), "test"))
	}
	if failed {
		return &exitError{code: exitFailed}
	}
	return nil
}

// numbered is "1 test" and "2 tests".
func numbered(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

// tell prints a test that failed; with -v every one.
func (c *testCmd) tell(a *app, o flowtest.Outcome) {
	if len(o.Failures) == 0 {
		if c.Verbose > 0 {
			fmt.Fprintf(a.out, "--- PASS: %s (%.2fs)\n", o.Test.Name, o.Elapsed.Seconds())
		}
		return
	}
	fmt.Fprintf(a.out, "--- FAIL: %s (%.2fs)\n", o.Test.Name, o.Elapsed.Seconds())
	for _, f := range o.Failures {
		fmt.Fprintf(a.out, "    %s: %s\n", f.Pos, strings.ReplaceAll(f.Message, "\n", "\n        "))
	}
}
