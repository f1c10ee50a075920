package driver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

func TestRunWithoutAWorkerIsCanceled(t *testing.T) {
	t.Parallel()
	h, p := newHost(t)
	s := newClient(t, h, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stopped := errors.New("stopped by SIGINT")
	var warnings []string
	job := teacmd.Job{Workflow: s.load(oneCall), Options: host.RunOptions{RunID: host.NewRunID()}, Warn: func(m string) {
		warnings = append(warnings, m)
		cancel(stopped)
	}}
	res, err := Engine{}.Run(ctx, s.flags, job)
	if err != nil || res.Status != flow.Stopped || !errors.Is(res.Err, stopped) {
		t.Fatalf("got %v, %v", res, err)
	}
	force := "runs cancel " + job.Options.RunID + " --force --engine temporal"
	if last := warnings[len(warnings)-1]; !strings.Contains(last, "no worker polls") || !strings.Contains(last, force) {
		t.Errorf("the warnings are %q", warnings)
	}
	if err := (Engine{}).Cancel(t.Context(), s.flags, job.Options.RunID, false); err == nil || !strings.Contains(err.Error(), force) {
		t.Errorf("got %v", err)
	}
	show := func(want flow.Status) teacmd.EngineRun {
		run, err := Engine{}.Show(t.Context(), s.flags, job.Options.RunID)
		if err != nil || run.Status != want {
			t.Errorf("the run is shown as %+v, %v", run, err)
		}
		return run
	}
	if notes := show(flow.Running).Notes; len(notes) != 1 || !strings.Contains(notes[0], "no worker polls") {
		t.Errorf("the notes are %q", notes)
	}
	if err := (Engine{}).Cancel(t.Context(), s.flags, job.Options.RunID, true); err != nil {
		t.Fatal(err)
	}
	if notes := show(flow.Stopped).Notes; len(notes) != 1 || !strings.Contains(notes[0], "no worker polls") {
		t.Errorf("the notes are %q", notes)
	}
	// Nothing else is asked for.
	for _, words := range [][]string{{"inspect"}, {"runs", "show", "--html"}} {
		out, err := s.tea("-", append(words, job.Options.RunID, "--engine", "temporal")...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "no worker polls the queue "+s.flags.Queue) {
			t.Errorf("tea %q: %v, %s", words, err, out)
		}
	}

	// It has nothing to be resumed from.
	s.start(s.worker)
	if res, err := (Engine{}).Resume(t.Context(), s.flags, job.Options.RunID, job); err == nil || !strings.Contains(err.Error(), "start it again") {
		t.Errorf("got %v, %v", res, err)
	}
	if calls := p.take(job.Options.RunID); len(calls) > 0 {
		t.Errorf("the calls were %q", calls)
	}
}

func TestTerminatedRunContinues(t *testing.T) {
	t.Parallel()
	h, p := newHost(t)
	s := newSite(t, h, nil)
	const text = `
nodes:
  - {name: first, uses: probe.call, with: {value: 1}, output: first}
  - {name: wait, uses: time.sleep, with: {seconds: 3600}, if: "not state.go"}
  - {name: last, uses: probe.call, with: {value: 2}, output: last}
`
	job := teacmd.Job{Workflow: s.load(text), Options: host.RunOptions{RunID: host.NewRunID()}}
	job.Options.Events = func(e flow.Event) {
		if e.Type == flow.EventNodeStart && e.Path == "wait" {
			if err := (Engine{}).Cancel(t.Context(), s.flags, job.Options.RunID, true); err != nil {
				t.Error(err)
			}
		}
	}
	res, err := Engine{}.Run(t.Context(), s.flags, job)
	if err != nil || res.Status != flow.Stopped {
		t.Fatalf("got %v, %v", res, err)
	}
	job.Options.Events, job.Options.Input = nil, map[string]any{"go": true}
	res, err = Engine{}.Resume(t.Context(), s.flags, job.Options.RunID, job)
	if err != nil || res.Status != flow.Done {
		t.Fatalf("got %v, %v", res, err)
	}
	if calls := p.take(job.Options.RunID); len(calls) != 2 {
		t.Errorf("the calls were %q", calls)
	}
	s.replayAll(job.Options.RunID)
}

// relay is a connection to a server that can be cut.
type relay struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l}
	t.Cleanup(r.cut)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := new(net.Dialer).DialContext(context.Background(), "tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, in, out)
			r.mu.Unlock()
			go func() { _, _ = io.Copy(out, in) }()
			go func() { _, _ = io.Copy(in, out) }()
		}
	}()
	return r
}

func (r *relay) cut() {
	_ = r.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
}

func TestInterruptedWithoutTheServer(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	r := newRelay(t, s.flags.Temporal)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stopped := errors.New("stopped by SIGINT")
	var warning string
	flags := s.flags
	flags.Temporal = r.Addr().String()
	job := teacmd.Job{Workflow: s.load("nodes:\n  - {name: wait, uses: time.sleep, with: {seconds: 3600}}\n"), Warn: func(m string) { warning = m }}
	job.Options = host.RunOptions{RunID: host.NewRunID(), Events: func(e flow.Event) {
		if e.Type == flow.EventNodeStart {
			r.cut()
			cancel(stopped)
		}
	}}
	res, err := Engine{}.Run(ctx, flags, job)
	if err != nil || res.Status != flow.Stopped || !errors.Is(res.Err, stopped) || res.Checkpoint == "" {
		t.Fatalf("got %v, %v", res, err)
	}
	if !strings.Contains(warning, "was not stopped") || !strings.Contains(warning, "runs cancel "+job.Options.RunID) {
		t.Errorf("the warning is %q", warning)
	}
	if err := (Engine{}).Cancel(t.Context(), s.flags, job.Options.RunID, false); err != nil {
		t.Error(err)
	}
	run, err := Engine{}.Show(t.Context(), s.flags, job.Options.RunID)
	if err != nil || run.Status != flow.Stopped {
		t.Errorf("the run is %v, %v", run, err)
	}
}

func TestWorkerNamesTheScheduleOfATrigger(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newClient(t, h, nil)
	file := write(t, "flow.yaml", "name: daily\nserve:\n  triggers:\n    - {cron: \"0 6 * * *\", timezone: Europe/Berlin}\n    - {cron: \"0 7 * * *\", input: {day: {name: today, n: 2}}}\n    - {cron: \"0 8 * * *\", input: {day: \"{{ event.at }}\"}}\nnodes:\n  - {name: last, run: 'return {}'}\n")
	cmd := s.tea("-", "worker", file)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for lines := bufio.NewScanner(stderr); lines.Scan() && !strings.Contains(lines.Text(), "working on queue"); {
		text += lines.Text() + "\n"
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, want := range []string{
		"--engine temporal --schedule 'CRON_TZ=Europe/Berlin 0 6 * * *'`", "--schedule '0 7 * * *' -i '{\"day\":{\"n\":2,\"name\":\"today\"}}'`",
		"--schedule '0 8 * * *'`, with --input",
	} {
		if !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), want) {
			t.Errorf("the worker prints %q without %q", text, want)
		}
	}
}
