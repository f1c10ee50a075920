package teacmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/the-edge-agent/tea/cmd/internal/flowtest"
	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

type testCmd struct {
	Files  []string `arg:"" optional:"" name:"file" help:"Files of tests, or directories with *_test.yaml files. Default: the working directory."`
	Record bool     `help:"Call the real actions and make the recordings that the tests name. Writes are carried out."`
	pluginFlags
	reportFlags
}

// workflowFiles returns the test files, which are next to the workflows.
func (c *testCmd) workflowFiles() []string {
	files := []string{}
	for _, file := range c.Files {
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			file = filepath.Join(file, "test.yaml")
		}
		files = append(files, file)
	}
	return files
}

// Run runs the tests of each file and prints the failures, as go test does.
func (c *testCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	ctx, stop := stoppable()
	defer stop(nil)
	newHost := func(replace []tea.Action) (*host.Host, error) {
		return a.openHost(c.pluginFlags, c.reportFlags, startPlugins, host.Options{Replace: replace})
	}
	files, err := testFiles(c.Files)
	if err != nil {
		return usageError(err)
	}
	var made map[string]bool
	if c.Record {
		made = map[string]bool{}
	}
	failed := false
	for _, file := range files {
		suite, err := flowtest.Load(file)
		if err != nil {
			return usageError(err)
		}
		good := true
		err = suite.Run(ctx, newHost, made, func(o flowtest.Outcome) {
			good = good && len(o.Failures) == 0
			c.report(a, o)
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
	if c.Record && len(made) == 0 {
		return usageError(errors.New("--record: no test has a recording; add one, such as recording: {file: pump.jsonl, actions: [modbus]}"))
	}
	if failed {
		return &exitError{code: exitFailed}
	}
	return nil
}

// testFiles returns the test files that paths name; without paths, those of the
// working directory.
func testFiles(paths []string) ([]string, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, unreadable(path, err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		before := len(files)
		for _, e := range entries {
			if ok, _ := filepath.Match("*_test.y*ml", e.Name()); ok && !e.IsDir() {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
		if len(files) == before {
			return nil, fmt.Errorf("%s has no *_test.yaml file", absolute(path))
		}
	}
	return files, nil
}

// numbered returns "1 test" or "2 tests".
func numbered(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

// report prints a test that failed; with -v every test.
func (c *testCmd) report(a *app, o flowtest.Outcome) {
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
