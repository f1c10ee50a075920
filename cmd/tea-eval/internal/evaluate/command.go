package evaluate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// Command returns the command eval.
func Command() teacmd.Command {
	return teacmd.ToolGroup("eval", "Run workflows on cases, grade the results and compare variants.", func() (any, []teacmd.Tool) {
		c := new(evalCmd)
		return c, []teacmd.Tool{&c.Run, &c.Record}
	})
}

type evalCmd struct {
	Run    runCmd    `cmd:"" default:"withargs" help:"Run an evaluation (the default)."`
	Record recordCmd `cmd:"" help:"Make a case from a recorded run."`
}

type runCmd struct {
	File       string `arg:"" help:"File of the evaluation."`
	JSON       bool   `name:"json" help:"Print the report as JSON."`
	HTML       string `name:"html" placeholder:"FILE" help:"Also write the report to this HTML file."`
	Cache      string `placeholder:"DIR" help:"Directory of the results that are kept. Default: tea/eval in the user's cache directory."`
	NoCache    bool   `help:"Run every case again, and keep no results."`
	Secrets    string `placeholder:"JSON|@FILE" help:"Secrets by name."`
	SecretsEnv string `placeholder:"PREFIX" help:"Use the environment variables with this prefix as secrets."`
	teacmd.ToolFlags

	file *File
	err  error
}

// Workflows implements [teacmd.Runner].
func (c *runCmd) Workflows() (files []string) {
	if c.file, c.err = Load(c.File); c.err != nil {
		return nil
	}
	for _, v := range c.file.Variants {
		files = append(files, v.Workflow)
	}
	return files
}

// Do runs the evaluation.
func (c *runCmd) Do(t *teacmd.Toolbox) (err error) {
	if c.err != nil {
		return teacmd.UsageErrorf("%w", c.err)
	}
	ev := &evaluation{file: c.file}
	if ev.options, err = t.RunOptions(c.Secrets, c.SecretsEnv); err != nil {
		return err
	}
	if c.file.Cache && !c.NoCache {
		if ev.cache, err = openCache(c.Cache); err != nil {
			return err
		}
	}
	defer ev.close()
	if err := ev.open(t); err != nil {
		return err
	}
	ev.started = time.Now()
	r := ev.report(t.Context, ev.run(t.Context))
	if err := c.write(t, r); err != nil {
		return err
	}
	if ev.cache != nil && ev.cache.err != nil {
		return ev.cache.err
	}
	return outcome(r)
}

func openCache(dir string) (*cache, error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find the directory of the cache: %w; name one with --cache, or use --no-cache", err)
		}
		dir = filepath.Join(user, "tea", "eval")
	}
	return &cache{dir: dir}, nil
}

// write prints the report and writes the HTML file.
func (c *runCmd) write(t *teacmd.Toolbox, r *Report) error {
	var err error
	if c.JSON {
		err = t.JSON(r)
	} else {
		err = printReport(t, r)
	}
	if c.HTML != "" {
		err = errors.Join(err, atomicfile.Write(c.HTML, 0o644, func(w io.Writer) error { return writeHTML(w, r) }))
	}
	return err
}

// outcome returns the error with the exit code of a report.
func outcome(r *Report) error {
	missing := 0
	for _, s := range r.Variants {
		missing += s.Counts[notRun] + s.Counts[interrupted]
	}
	switch {
	case r.Status == stopped:
		return teacmd.StoppedErrorf("interrupted: %d of %d runs are missing; the same command continues with the results that are kept", missing, len(r.Trials))
	case r.Status == overBudget:
		return teacmd.BudgetErrorf("the budget of %s was reached: %d of %d runs were not started", r.Limit, missing, len(r.Trials))
	case !r.Met:
		return errors.New("a threshold is not met")
	}
	return nil
}

type recordCmd struct {
	RunID  string `arg:"" name:"run" help:"Id of the run or the beginning of it, or the file of its checkpoint."`
	Output string `placeholder:"PATH" help:"Expect this part of the final state, such as answer.text. Default: what the run has changed."`
	To     string `placeholder:"FILE" help:"Append the case to this JSONL file instead of printing it."`
	Dir    string `name:"checkpoint-dir" short:"c" placeholder:"DIR" help:"Directory of runs."`
	teacmd.ToolFlags
}

// Do makes the case.
func (c *recordCmd) Do(t *teacmd.Toolbox) error {
	run, err := t.Recorded(c.Dir, c.RunID)
	if err != nil {
		return err
	}
	var expected any = run.State
	if c.Output != "" {
		var ok bool
		if expected, ok = at(expected, c.Output); !ok {
			return teacmd.UsageErrorf("--output: the final state has no %s", c.Output)
		}
	} else {
		changed := map[string]any{}
		for name, v := range run.State {
			if given, ok := run.Input[name]; !ok || !value.Equal(given, v) {
				changed[name] = v
			}
		}
		expected = changed
	}
	line, err := value.Encode(map[string]any{"id": run.ID, "input": toAny(run.Input), "expected": expected})
	if err != nil {
		return err
	}
	if c.To == "" {
		_, err = fmt.Fprintf(t.Out, "%s\n", line)
		return err
	}
	if _, err := os.Stat(c.To); err == nil {
		err = eachLine(c.To, func(pos string, _ int, fields map[string]any) error {
			if fields["id"] == run.ID {
				return fmt.Errorf("%s already has the id %s", pos, run.ID)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return appendLine(c.To, line)
}

// appendLine appends a line to a file, which is replaced atomically.
func appendLine(file string, line []byte) error {
	mode := os.FileMode(0o600)
	text, err := os.ReadFile(file)
	if info, failure := os.Stat(file); failure == nil {
		mode = info.Mode().Perm()
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	return atomicfile.Write(file, mode, func(w io.Writer) error {
		_, err := w.Write(append(append(text, line...), '\n'))
		return err
	})
}

// printReport prints the report for people.
func printReport(t *teacmd.Toolbox, r *Report) error {
	fmt.Fprintf(t.Out, "%s: %s, %s\n\n", r.File, count(r.Cases, "case"), count(r.Repeats, "run")+" of each")
	var rows [][]string
	for _, s := range r.Variants {
		rows = append(rows, append([]string{s.Name, ""}, cells(s.Rate)...))
		for _, g := range s.Graders {
			rows = append(rows, append([]string{"", g.Name}, cells(g)...))
		}
		for _, tag := range s.Tags {
			rows = append(rows, append([]string{"", "tag " + tag.Name}, cells(tag)...))
		}
	}
	if err := t.Table([]string{"VARIANT", "GRADER", "PASSED", "RATE", "95% INTERVAL", "THRESHOLD"}, rows); err != nil {
		return err
	}
	for _, s := range r.Variants {
		fmt.Fprintf(t.Out, "\n%s: ", s.Name)
		for _, status := range []string{passed, failed, broken, interrupted, notRun} {
			if n := s.Counts[status]; n > 0 || status == passed {
				fmt.Fprintf(t.Out, "%d %s, ", n, status)
			}
		}
		fmt.Fprintf(t.Out, "%d from the cache; %d steps, %d tokens, %.4g usd\n", s.Cached, s.Usage.Steps, s.Usage.Tokens, s.Usage.USD)
	}
	if r.Comparison != nil {
		fmt.Fprintf(t.Out, "\n%s\n", r.Comparison.Text)
	}
	for _, a := range r.Agreements {
		fmt.Fprintf(t.Out, "\n%s\n", a.text())
	}
	printFaults(t, r)
	return nil
}

// mostFaults is the number of trials that are printed with their faults.
const mostFaults = 20

func printFaults(t *teacmd.Toolbox, r *Report) {
	n := 0
	for i := range r.Trials {
		trial := &r.Trials[i]
		if trial.Status == passed || !trial.ran() {
			continue
		}
		if n++; n > mostFaults {
			continue
		}
		if n == 1 {
			fmt.Fprintln(t.Out)
		}
		for _, reason := range trial.reasons() {
			fmt.Fprintf(t.Out, "%s case %s: %s\n", trial.Variant, trial.Case, reason)
		}
	}
	if n > mostFaults {
		fmt.Fprintf(t.Out, "and %d more; --json and --html have all\n", n-mostFaults)
	}
}

// reasons returns why the trial did not pass.
func (t *Trial) reasons() (list []string) {
	if t.Error != "" {
		list = append(list, t.Status+": "+t.Error)
	}
	for _, name := range sortedNames(t.Grades) {
		if g := t.Grades[name]; !g.Pass {
			list = append(list, name+": "+cmp.Or(g.Reason, "not met"))
		}
	}
	return list
}

func (a *Agreement) text() string {
	kappa := "undefined"
	if a.Kappa != nil {
		kappa = fmt.Sprintf("%.2f", *a.Kappa)
	}
	text := fmt.Sprintf("judge %s agrees with people on %.1f%% of the labels (%d of %d judged), Cohen's kappa %s", a.Judge, a.Raw*100, a.Judged, a.Labels, kappa)
	if a.MinKappa != nil {
		text += fmt.Sprintf(" (least %.2f: %s)", *a.MinKappa, metWord(a.Met))
	}
	if a.Error != "" {
		text += "; " + a.Error
	}
	return text
}

func cells(r Rate) []string {
	if r.Trials == 0 {
		return []string{"0/0", "", "", threshold(r)}
	}
	return []string{
		fmt.Sprintf("%d/%d", r.Passed, r.Trials), percent(r.Rate), percent(r.Low) + " to " + percent(r.High), threshold(r),
	}
}

func threshold(r Rate) string {
	if r.Threshold == nil {
		return ""
	}
	return percent(*r.Threshold) + " " + metWord(r.Met)
}

func metWord(met bool) string {
	if met {
		return "met"
	}
	return "not met"
}

func percent(x float64) string { return fmt.Sprintf("%.1f%%", x*100) }

func count(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}
