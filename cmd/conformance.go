//go:build !noplugins

package teacmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/conform"
)

// Run checks a binary against the protocol.
func (c *pluginTestCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	suite, err := c.suite(a)
	if err != nil {
		return err
	}
	if info, err := os.Stat(c.Binary); err != nil || info.IsDir() {
		return usageErrorf("%s is not the binary of a plugin", absolute(c.Binary))
	}
	ctx, stop := stoppable()
	defer stop(nil)
	output := &lastOutput{}
	process, err := startAsHost(ctx, absolute(c.Binary), output)
	if err != nil {
		return pluginError(fmt.Errorf("%w%s\n  hint: docs/guide/plugin-protocol.md describes the start of a plugin", err, output.note()))
	}
	defer process.Close()
	var results []conform.Result
	report := func(r conform.Result) {
		results = append(results, r)
		if !c.JSON {
			a.printCheck(r)
		}
	}
	if suite.Match == nil || suite.Match(fileName) {
		report(checkFileName(c.Binary, process.Manifest().Name))
	}
	err = suite.Run(ctx, process, report)
	if err != nil {
		hint := ""
		if c.Settings == "" && len(process.Manifest().Settings) > 0 {
			hint = "\n  hint: pass settings with --settings"
		}
		return pluginError(fmt.Errorf("%s: %w%s%s", c.Binary, err, output.note(), hint))
	}
	if len(results) == 0 {
		return usageErrorf("--run %s: no check has a name that matches", c.Only)
	}
	return a.summarizeChecks(c, process.Manifest(), results)
}

// fileName is the check of the name of the binary.
const fileName = "file name"

// checkFileName compares the name of a binary with the name of its bundle. Hosts
// find only binaries called tea-plugin-NAME.
func checkFileName(binary, bundle string) conform.Result {
	r := conform.Result{Check: fileName, Status: conform.Passed}
	name, isPlugin := strings.CutPrefix(filepath.Base(binary), "tea-plugin-")
	switch {
	case !isPlugin:
		r.Status, r.Detail = conform.Skipped, "hosts find only files called tea-plugin-"+bundle
	case name != bundle:
		r.Status, r.Remedy = conform.Failed, "call the file tea-plugin-"+bundle
		r.Detail = fmt.Sprintf("the file is called tea-plugin-%s, but the bundle %s", name, bundle)
	}
	return r
}

// suite returns the checks that the flags select.
func (c *pluginTestCmd) suite(a *app) (conform.Suite, error) {
	var suite conform.Suite
	if c.Settings != "" {
		settings, err := a.readObject("--settings", c.Settings)
		if err != nil {
			return suite, err
		}
		suite.Settings = tea.Settings{}
		for key, v := range settings {
			raw, err := json.Marshal(v)
			if err != nil {
				return suite, err
			}
			suite.Settings[key] = raw
		}
	}
	if c.Only != "" {
		rule, err := regexp.Compile(c.Only)
		if err != nil {
			return suite, usageErrorf("--run: %w", err)
		}
		suite.Match = rule.MatchString
	}
	return suite, nil
}

// startAsHost starts a plugin with the environment that a host gives it. The
// variables that it declares are known once it runs; it is started again with them.
func startAsHost(ctx context.Context, binary string, output io.Writer) (*conform.Process, error) {
	start := func(declared []string) (*conform.Process, error) {
		cmd := exec.CommandContext(ctx, binary)
		cmd.Env = subproc.Environ(declared)
		return conform.Start(ctx, cmd, output)
	}
	process, err := start(nil)
	if err != nil || len(process.Manifest().Env) == 0 {
		return process, err
	}
	process.Close()
	return start(process.Manifest().Env)
}

// printCheck prints the result of a check. Skipped checks are only in the
// summary.
func (a *app) printCheck(r conform.Result) {
	switch r.Status {
	case conform.Skipped:
		if r.Check == fileName {
			fmt.Fprintf(a.out, "skip  %s: %s\n", r.Check, r.Detail)
		}
	case conform.Passed:
		fmt.Fprintf(a.out, "pass  %s\n", r.Check)
	case conform.Failed:
		fmt.Fprintf(a.out, "FAIL  %s\n", r.Check)
		for line := range strings.Lines(r.Detail) {
			fmt.Fprintf(a.out, "      %s\n", strings.TrimRight(line, "\n"))
		}
		if r.Remedy != "" {
			fmt.Fprintf(a.out, "      what to do: %s\n", r.Remedy)
		}
	}
}

// summarizeChecks prints the summary and returns the exit code as an error.
func (a *app) summarizeChecks(c *pluginTestCmd, m tea.Manifest, results []conform.Result) error {
	count := map[conform.Status]int{}
	var skipped []string
	for _, r := range results {
		count[r.Status]++
		if r.Status == conform.Skipped && r.Check != fileName {
			skipped = append(skipped, r.Check)
		}
	}
	if c.JSON {
		err := writeJSON(a.stdout, map[string]any{
			"plugin": m.Name, "version": m.Version, "passed": count[conform.Passed], "failed": count[conform.Failed],
			"skipped": count[conform.Skipped], "checks": results,
		})
		if err != nil {
			return err
		}
	} else {
		if len(skipped) > 0 {
			fmt.Fprintf(a.out, "skip  %s\n      they need the probe actions, see docs/guide/writing-plugins.md\n", strings.Join(skipped, ", "))
		}
		fmt.Fprintf(a.out, "%s %s: %d passed, %d failed, %d skipped\n", m.Name, m.Version, count[conform.Passed], count[conform.Failed], count[conform.Skipped])
	}
	if count[conform.Failed] > 0 {
		return &exitError{code: exitPlugin}
	}
	return nil
}

// lastOutput keeps the end of a plugin's output, for the error of a start. It is
// safe for concurrent use.
type lastOutput struct {
	mu   sync.Mutex
	text []byte
}

// mostOutput bounds the output in a message.
const mostOutput = 2 << 10

// Write keeps the last bytes.
func (o *lastOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	o.text = o.text[max(0, len(o.text)-mostOutput):]
	return len(p), nil
}

// note returns the output for the end of a message.
func (o *lastOutput) note() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text := strings.TrimSpace(string(o.text)); text != "" {
		return "\n  output of the plugin: " + inLine(text)
	}
	return ""
}
