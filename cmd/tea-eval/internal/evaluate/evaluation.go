package evaluate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// The statuses of a trial. Only passed is good.
const (
	passed = "passed"
	failed = "failed"
	// broken is the status of a run that failed, timed out or waits for an answer, or of
	// a result that a grader could not grade.
	broken      = "error"
	interrupted = "interrupted"
	notRun      = "not run"
)

// record is a run that has ended.
type record struct {
	State   object     `json:"state"`
	Calls   []call     `json:"calls"`
	Usage   flow.Usage `json:"usage"`
	Seconds float64    `json:"seconds"`
}

// object is an object whose numbers keep their types in JSON.
type object map[string]any

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) { return value.Encode(map[string]any(o)) }

// Trial is one run of a case.
type Trial struct {
	Variant string `json:"variant"`
	Case    string `json:"case"`
	Repeat  int    `json:"repeat"`
	Status  string `json:"status"`
	Error   string `json:"error,omitempty"`
	// Cached reports whether the result is one of an earlier evaluation.
	Cached  bool               `json:"cached"`
	Output  any                `json:"output"`
	Calls   []call             `json:"calls"`
	Usage   flow.Usage         `json:"usage"`
	Seconds float64            `json:"seconds"`
	Grades  map[string]verdict `json:"grades"`

	variant, index int
}

// evaluation runs the cases of a file.
type evaluation struct {
	file      *File
	options   host.RunOptions
	workflows []*host.Workflow
	masks     []host.Mask
	cache     *cache
	// versions identify the program, its plugins and the files that the workflows depend on.
	versions any
	started  time.Time

	mu    sync.Mutex
	spent flow.Usage
}

// open loads the workflows and graders. The caller closes the evaluation, also after an
// error.
func (ev *evaluation) open(t *teacmd.Toolbox) error {
	f := ev.file
	for _, v := range f.Variants {
		config, err := value.Encode(map[string]any{"settings": v.Settings})
		if err != nil {
			return err
		}
		o := host.LoadOptions{Overlays: v.Overlays}
		if len(v.Settings) > 0 {
			o.Config = string(config)
		}
		wf, err := t.Host.Load(v.Workflow, o)
		if err != nil {
			return err
		}
		ev.workflows = append(ev.workflows, wf)
		mask, err := wf.Mask(ev.options.Secrets)
		if err != nil {
			return err
		}
		ev.masks = append(ev.masks, mask)
		for i := range f.Cases {
			if err := wf.CheckInput(value.Merge(v.Input, f.Cases[i].Input), ev.options.Secrets); err != nil {
				return teacmd.UsageErrorf("%s: %w", f.Cases[i].Pos, err)
			}
		}
	}
	dir, err := filepath.Abs(filepath.Dir(string(f.File)))
	if err != nil {
		return err
	}
	for _, g := range f.graders {
		if err := g.prepare(t.Context, t.Host, dir, ev.options); err != nil {
			return teacmd.UsageErrorf("%w", err)
		}
		if g.judge != nil {
			g.check = func(ctx context.Context, e *evidence) (verdict, error) { return ev.ask(ctx, g, e) }
		}
	}
	return ev.readVersions(t)
}

// readVersions reads the versions of the program, of the plugins and of files.
func (ev *evaluation) readVersions(t *teacmd.Toolbox) error {
	list := []any{t.Version}
	for _, m := range ev.workflows[0].Plugins() {
		list = append(list, m.Name+" "+m.Version)
	}
	for _, name := range ev.file.Depends {
		text, err := os.ReadFile(name)
		if err != nil {
			return teacmd.UsageErrorf("depends: %w", err)
		}
		list = append(list, string(text))
	}
	ev.versions = list
	return nil
}

func (ev *evaluation) close() {
	for _, wf := range ev.workflows {
		wf.Close()
	}
	for _, g := range ev.file.graders {
		if g.program != nil && g.program.wf != nil {
			g.program.wf.Close()
		}
	}
}

// text returns an error without secrets.
func (ev *evaluation) text(err error) string {
	text := err.Error()
	for _, m := range ev.masks {
		text = m.Text(text)
	}
	return text
}

// run makes the trials, with the variants of a case next to each other. When the context
// ends or the budget is spent, no further trial starts.
func (ev *evaluation) run(ctx context.Context) []Trial {
	f := ev.file
	var trials []Trial
	for i := range f.Cases {
		for repeat := range f.Repeats {
			for v := range f.Variants {
				trials = append(trials, Trial{Variant: f.Variants[v].Name, Case: f.Cases[i].ID, Repeat: repeat + 1, Status: notRun, variant: v, index: i})
			}
		}
	}
	next := make(chan *Trial)
	var workers sync.WaitGroup
	for range f.Parallel {
		workers.Go(func() {
			for t := range next {
				if ctx.Err() == nil && ev.overBudget() == "" {
					ev.try(ctx, t)
				}
			}
		})
	}
	for i := range trials {
		next <- &trials[i]
	}
	close(next)
	workers.Wait()
	return trials
}

func (ev *evaluation) spend(u flow.Usage) {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	ev.spent = ev.spent.Add(u)
}

// overBudget returns the limit that was reached, or "".
func (ev *evaluation) overBudget() string {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	b := ev.file.Budget
	switch {
	case b.USD > 0 && ev.spent.USD >= b.USD:
		return fmt.Sprintf("%v usd", b.USD)
	case b.Tokens > 0 && ev.spent.Tokens >= b.Tokens:
		return fmt.Sprintf("%d tokens", b.Tokens)
	case b.Seconds > 0 && time.Since(ev.started).Seconds() >= b.Seconds:
		return fmt.Sprintf("%v seconds", b.Seconds)
	}
	return ""
}

// try runs a case and grades the result.
func (ev *evaluation) try(ctx context.Context, t *Trial) {
	r, err := ev.result(ctx, t)
	if r != nil {
		t.Calls, t.Usage, t.Seconds = r.Calls, r.Usage, r.Seconds
	}
	if err == nil {
		t.Output, _ = at(map[string]any(r.State), ev.file.output)
		t.Status, err = ev.grade(ctx, t, r)
	}
	if err != nil {
		t.Status, t.Error = broken, ev.text(err)
		if ctx.Err() != nil {
			t.Status = interrupted
		}
	}
}

func (ev *evaluation) grade(ctx context.Context, t *Trial, r *record) (string, error) {
	status, judged := passed, &record{}
	t.Grades = map[string]verdict{}
	for _, g := range ev.file.graders {
		v, err := g.grade(ctx, evidence{c: &ev.file.Cases[t.index], run: r, judged: judged})
		if err != nil {
			return "", fmt.Errorf("grader %s: %w", g.name, err)
		}
		v.Reason = ev.masks[t.variant].Text(v.Reason)
		if t.Grades[g.name] = v; !v.Pass {
			status = failed
		}
	}
	t.Usage = t.Usage.Add(judged.Usage)
	return status, nil
}

// result returns the result of a run that is done, from the cache or a new one.
func (ev *evaluation) result(ctx context.Context, t *Trial) (*record, error) {
	v, c, wf := ev.file.Variants[t.variant], ev.file.Cases[t.index], ev.workflows[t.variant]
	input := value.Merge(v.Input, c.Input)
	key, err := ev.cache.key("run", wf, ev.options.Secrets, ev.versions, map[string]any{"input": input, "answers": c.Answers, "repeat": int64(t.Repeat), "dry_run": ev.file.DryRun})
	if err != nil {
		return nil, err
	}
	kept := new(record)
	if ev.cache.get(key, kept) {
		t.Cached = true
		return kept, nil
	}
	r, err := ev.execute(ctx, wf, input, c.Answers, ev.masks[t.variant])
	if r != nil {
		ev.spend(r.Usage)
	}
	if err == nil {
		ev.cache.put(key, r)
	}
	return r, err
}

// execute runs a workflow. The error is the reason why the run is not done.
func (ev *evaluation) execute(ctx context.Context, wf *host.Workflow, input, answers map[string]any, mask host.Mask) (*record, error) {
	late := fmt.Errorf("the run took longer than %s", ev.file.Timeout)
	if ev.file.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, ev.file.Timeout, late)
		defer stop()
	}
	r := &record{Calls: []call{}}
	var mu sync.Mutex
	o := ev.options
	o.Input, o.DryRun = input, ev.file.DryRun
	if answers != nil {
		o.Ask = func(_ context.Context, i flow.Interrupt) (any, error) {
			for _, name := range []string{i.ID, i.Node} {
				if v, ok := answers[name]; ok {
					return v, nil
				}
			}
			return nil, fmt.Errorf("the case has no answer to %s", i.ID)
		}
	}
	o.Middleware = func(ctx context.Context, req *tea.Request, next func(context.Context, *tea.Request) (*tea.Response, error)) (*tea.Response, error) {
		if !isModel(req.Action) {
			params, err := req.Params.Value()
			if err != nil {
				return nil, err
			}
			mu.Lock()
			r.Calls = append(r.Calls, call{req.Action, mask.Value(params)})
			mu.Unlock()
		}
		return next(ctx, req)
	}
	res, err := wf.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	mu.Lock() // a call that was abandoned may still begin
	defer mu.Unlock()
	done := &record{Calls: r.Calls, Usage: res.Usage, Seconds: res.Elapsed.Seconds()}
	switch {
	case res.Status == flow.Done:
		state, _ := mask.Value(res.State).(map[string]any)
		done.State = state
		return done, nil
	case errors.Is(context.Cause(ctx), late):
		return done, late
	case res.Status == flow.Waiting && len(res.Pending) > 0:
		return done, fmt.Errorf("the run waits for an answer to %s; add it to the answers of the case", res.Pending[0].ID)
	case res.Err != nil:
		return done, res.Err
	}
	return done, fmt.Errorf("the run is %s", res.Status)
}

// isModel reports whether an action is one of a model, not a tool.
func isModel(action string) bool {
	switch action {
	case "llm.call", "llm.stream", "llm.tools", "agent.run":
		return true
	}
	return false
}
