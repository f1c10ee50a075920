package driver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

const oneCall = `
nodes:
  - {name: call, uses: probe.call, with: {value: 1}, output: got}
`

// warned runs a workflow, and calls then with the first warning.
func (s *site) warned(text string, o host.RunOptions, then func(warning string)) *flow.Result {
	s.t.Helper()
	o.RunID = host.NewRunID()
	return s.followed(teacmd.Job{Workflow: s.load(text), Options: o}, Engine{}.Run, then)
}

// resumed answers the question of a run, and calls then with the first warning if it
// is not nil.
func (s *site) resumed(res *flow.Result, text string, then func(warning string)) *flow.Result {
	s.t.Helper()
	job := teacmd.Job{Workflow: s.load(text), Options: host.RunOptions{Answers: map[string]any{res.Pending[0].ID: "yes"}}}
	return s.followed(job, func(ctx context.Context, f teacmd.EngineFlags, job teacmd.Job) (*flow.Result, error) {
		return Engine{}.Resume(ctx, f, res.RunID, job)
	}, then)
}

func (s *site) followed(job teacmd.Job, follow func(context.Context, teacmd.EngineFlags, teacmd.Job) (*flow.Result, error), then func(warning string)) *flow.Result {
	s.t.Helper()
	warnings := make(chan string, 100)
	done := make(chan *flow.Result)
	job.Warn = func(m string) { warnings <- m }
	go func() {
		res, err := follow(s.t.Context(), s.flags, job)
		if err != nil {
			s.t.Error(err)
		}
		done <- res
	}()
	if then == nil {
		return <-done
	}
	select {
	case w := <-warnings:
		then(w)
	case res := <-done:
		s.t.Fatalf("the run ended without a warning: %v", res)
	}
	return <-done
}

func TestMissingWorkerIsReported(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newClient(t, h, nil)
	res := s.warned(oneCall, host.RunOptions{}, func(warning string) {
		if !strings.Contains(warning, "no worker polls the queue "+s.flags.Queue) {
			t.Errorf("the warning is %q", warning)
		}
		s.start(s.worker)
	})
	if res == nil || res.Status != flow.Done {
		t.Errorf("got %v", res)
	}
}

// A worker that cannot make a call leaves it to one that can, and the user learns
// which plugin is missing.
func TestMissingPluginIsNamed(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newClient(t, h, nil)
	s.start(s.on(bareHost(t)))
	named := func(text string) {
		t.Helper()
		for _, part := range []string{"the plugin probe", " worker --temporal ", " --plugins DIR", "tea plugin install"} {
			if !strings.Contains(text, part) {
				t.Errorf("there is no %q in %s", part, text)
			}
		}
		if internal := pluginQueue(s.flags.Queue, "probe"); strings.Contains(text, internal) {
			t.Errorf("the internal queue %s is named: %s", internal, text)
		}
	}
	begin := time.Now()
	res := s.warned(oneCall, host.RunOptions{}, func(warning string) {
		named(warning)
		list, err := Engine{}.Runs(t.Context(), s.flags)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d runs, %v", len(list), err)
		}
		named(s.output("runs", "show", list[0].ID))
		t.Logf("named %v after the start", time.Since(begin))
		s.offer(s.worker, pluginQueue(s.flags.Queue, "probe"))
	})
	if res == nil || res.Status != flow.Done {
		t.Errorf("got %v", res)
	}
}

func TestMissingPluginOfAQueueIsNamed(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	db := s.flags.Queue + "-db"
	s.offer(s.on(bareHost(t)), db)
	res := s.warned("queues: {probe.*: "+db+"}"+oneCall, host.RunOptions{}, func(warning string) {
		if want := "the queue " + db + " does not have the plugin probe"; !strings.Contains(warning, want) {
			t.Errorf("there is no %q in %s", want, warning)
		}
		s.offer(s.worker, db)
	})
	if res == nil || res.Status != flow.Done {
		t.Errorf("got %v", res)
	}
}

func TestRunIDIsUsedOnce(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	res := s.run(t.Context(), oneCall, host.RunOptions{})
	_, err := Engine{}.Run(t.Context(), s.flags, teacmd.Job{Workflow: s.load(oneCall), Options: host.RunOptions{RunID: res.RunID}})
	if err == nil || !strings.Contains(err.Error(), "run "+res.RunID+" exists") {
		t.Errorf("got %v", err)
	}
}

// An activity asks the run for its workflow, which the same worker can have to load
// for the answer.
func TestFreshWorkerContinuesARun(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	l, err := s.worker.workflows.get("other", func() (*definition, error) {
		d, err := newDefinition(s.load(oneCall), host.LoadOptions{}, nil)
		if err != nil {
			return nil, err
		}
		d.Store = s.storeID
		inner, err := s.worker.workflows.get("other", func() (*definition, error) { return d, nil })
		if err == nil {
			s.worker.workflows.release(inner)
		}
		return d, err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.worker.workflows.release(l)
}

func TestUnusedWorkflowsAreClosed(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newClient(t, h, nil)
	d, err := newDefinition(s.load(oneCall), host.LoadOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Store = s.storeID
	w := &s.worker.workflows
	get := func(key string) *loaded {
		l, err := w.get(key, func() (*definition, error) { return d, nil })
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	used := get("used")
	for i := range 2 * maxIdle {
		w.release(get(string(rune('a' + i))))
	}
	if len(w.all) != maxIdle+1 || w.all["used"] != used || w.all["a"] != nil {
		t.Errorf("there are %d workflows", len(w.all))
	}
	// With other plugins they are loaded again, and those in use go on.
	w.renew()
	if again := get("used"); again == used || len(w.all) != 1 {
		t.Errorf("there are %d workflows, the same one is used: %v", len(w.all), again == used)
	}
	if _, err := used.Run(t.Context(), host.RunOptions{}); err != nil {
		t.Error(err)
	}
	w.release(used)
}

func TestBlobsOfRemovedRunsAreRemoved(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Options{Actions: []tea.Action{host.Func("big.make", "Makes a text.", func(context.Context, map[string]any) (any, error) {
		return map[string]any{"text": strings.Repeat("x", 1<<20)}, nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	s := newSite(t, h, nil)
	const text = "nodes:\n  - {name: make, uses: big.make, output: big}\n"
	gone, kept := s.run(t.Context(), text, host.RunOptions{}).RunID, s.run(t.Context(), text, host.RunOptions{}).RunID
	_, err = s.client.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{Namespace: s.namespace, WorkflowExecution: executionOf(gone, "")})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server has removed the run", func() bool {
		_, err := s.describe(t.Context(), gone, "")
		return errors.As(err, new(*serviceerror.NotFound))
	})
	if err := s.pruneBlobs(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for run, want := range map[string]bool{gone: false, kept: true} {
		if _, err := os.Stat(filepath.Join(s.flags.Blobs, runPlace(s.namespace, run))); (err == nil) != want {
			t.Errorf("values of the run exist: %v, want %v (%v)", err == nil, want, err)
		}
	}
}

// The events of a run are with its worker. When none answers after the end, they are
// not taken to be complete.
func TestMissingLastEventsAreWarnedOf(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	o := host.RunOptions{RunID: host.NewRunID(), Events: func(flow.Event) {}}
	if _, err := (Engine{}).Run(t.Context(), s.flags, teacmd.Job{Workflow: s.load(oneCall), Options: o}); err != nil {
		t.Fatal(err)
	}
	r, err := connect(t.Context(), s.flags, o.RunID, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	var warnings []string
	r.warn, r.ended = func(m string) { warnings = append(warnings, m) }, time.Now().Add(-time.Hour)
	if out, err := r.closed(t.Context(), false); err != nil || out.Status != flow.Done {
		t.Errorf("%v, %v; want the outcome of the run", out, err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], " runs events "+o.RunID) {
		t.Errorf("warnings: %q", warnings)
	}
}
