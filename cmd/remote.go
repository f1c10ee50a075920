package teacmd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/the-edge-agent/tea/client"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// RemoteCommands returns the commands for [Options.Remote], which use the API of `tea
// serve`. Programs that do not call it do not link the client.
func RemoteCommands() []Command {
	return []Command{
		{command{name: "run", help: "Run a workflow of the server.", grammar: func() any { return new(remoteRunCmd) }}},
		{command{name: "resume", help: "Continue a run that was interrupted, stopped or failed.", grammar: func() any { return new(remoteResumeCmd) }}},
		{command{name: "fork", help: "Copy a run up to a step and continue from there with other input.", grammar: func() any { return new(remoteForkCmd) }}},
		{command{name: "runs", help: "List runs, show a run, print its events.", grammar: func() any { return new(remoteRunsCmd) }}},
	}
}

// serverFlags are the flags for connecting to the server.
type serverFlags struct {
	TokenFile string `placeholder:"FILE" help:"File with the token for the server. Default: the file named by TEA_TOKEN_FILE."`
	TLSCA     string `name:"tls-ca" placeholder:"FILE" help:"Certificates of the server's authorities, in PEM form. Default: the system's."`
	reportFlags
}

// open returns a client of the server.
func (f *serverFlags) open(a *app) (*client.Client, error) {
	a.setReport(f.reportFlags)
	o := client.Options{TokenFile: f.TokenFile}
	if o.TokenFile == "" {
		o.TokenFile = a.getenv("TEA_TOKEN_FILE")
	}
	if f.TLSCA != "" {
		text, err := os.ReadFile(f.TLSCA)
		if err != nil {
			return nil, usageErrorf("--tls-ca: %w", err)
		}
		o.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		if !o.TLS.RootCAs.AppendCertsFromPEM(text) {
			return nil, usageErrorf("--tls-ca: %s has no certificate in PEM form", absolute(f.TLSCA))
		}
	}
	c, err := client.New(a.server, o)
	if err != nil {
		return nil, usageErrorf("--host: %w", err)
	}
	return c, nil
}

// remoteFlags are the common flags of commands that follow a run of a server. They have
// the same meaning as for `tea run`.
type remoteFlags struct {
	Input       string   `short:"i" placeholder:"JSON|@FILE|-" help:"Input, merged over the initial state; on resume, into the state."`
	Stream      bool     `short:"s" config:"" help:"Print one JSON object per event to stdout during the run."`
	Interactive bool     `short:"I" help:"Ask on the terminal instead of stopping at interrupts."`
	Output      string   `short:"o" placeholder:"FILE" help:"Write the final state to this file instead of stdout."`
	FailOnState []string `sep:"none" placeholder:"KEY=VALUE" help:"Exit with 1 if the final state has this value (repeatable)."`
	serverFlags
}

// remoteRun is a run of a server that is followed.
type remoteRun struct {
	a     *app
	c     *client.Client
	flags *remoteFlags
	// last is the number of the last event; elapsed and errorType come from it.
	last      int64
	elapsed   time.Duration
	errorType string
	stream    *eventStream
}

// follow starts or continues a run, follows it until it ends or waits, and prints its
// result. The past events of the run after are not printed; "" names none.
func (f *remoteFlags) follow(a *app, after string, start func(context.Context, *client.Client, map[string]any) (*client.Run, error)) error {
	if f.Interactive && f.Input == "-" {
		return usageErrorf("-I and -i - both read stdin")
	}
	input, err := a.readInput(f.Input)
	if err != nil {
		return err
	}
	if err := checkRules(f.FailOnState); err != nil {
		return err
	}
	if f.Output == "-" { // the usual name for stdout
		f.Output = ""
	}
	if err := checkOutput(f.Output); err != nil {
		return usageErrorf("--output: %w", err)
	}
	c, err := f.open(a)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, stop := stoppable()
	defer stop(nil)
	r := &remoteRun{a: a, c: c, flags: f, stream: &eventStream{}}
	if f.Stream {
		r.stream.w = a.stdout
	}
	if after != "" {
		for e, err := range c.Events(ctx, after, 0) {
			if err != nil {
				return serverError(err)
			}
			r.last = e.Seq
		}
	}
	starting, cancel := withStopTimeout(ctx) // so that a run that has just begun is not left behind
	defer cancel()
	run, err := start(starting, c, input)
	if err != nil {
		return serverError(err)
	}
	if run, err = r.followRun(ctx, run.ID); err != nil {
		return serverError(err)
	}
	return r.finish(run)
}

// stopTime is how long the server has to answer after an interrupt.
const stopTime = 30 * time.Second

// withStopTimeout returns a context that is done stopTime after ctx.
func withStopTimeout(ctx context.Context) (_ context.Context, cancel func()) {
	late, done := context.WithCancel(context.WithoutCancel(ctx))
	var timer atomic.Pointer[time.Timer]
	stop := context.AfterFunc(ctx, func() { timer.Store(time.AfterFunc(stopTime, done)) })
	return late, func() {
		stop()
		if t := timer.Load(); t != nil {
			t.Stop()
		}
		done()
	}
}

// followRun prints the events of a run until it ends, or waits for another person.
func (r *remoteRun) followRun(ctx context.Context, id string) (*client.Run, error) {
	k := &asker{app: r.a}
	for {
		run, err := r.wait(ctx, id)
		if err != nil || !r.flags.Interactive || run.Status != client.Waiting {
			return run, err
		}
		res, err := resultOf(run)
		if err != nil {
			return nil, err
		}
		answers := map[string]any{}
		var left error
		for _, i := range res.Pending {
			var answer any
			if answer, left = k.ask(ctx, i); left != nil {
				break
			}
			answers[i.ID] = answer
		}
		if len(answers) == 0 {
			return run, nil // the user has left
		}
		sending, cancel := withStopTimeout(ctx)
		_, err = r.c.Resume(sending, id, client.Resume{Answers: answers})
		cancel()
		switch refused := (*client.Error)(nil); {
		case errors.As(err, &refused) && (refused.Status == http.StatusConflict || refused.Status == http.StatusUnprocessableEntity):
			fmt.Fprintf(k.out(), "%v\n", err) // another client was faster, or the time has passed
		case err != nil:
			return nil, err
		}
		if left != nil {
			return r.wait(ctx, id)
		}
	}
}

// pause is the wait before the description of a run without new events is read again.
const pause = 200 * time.Millisecond

// wait prints the events of a run until it ends or waits. If the command is
// interrupted, the run is stopped.
func (r *remoteRun) wait(ctx context.Context, id string) (*client.Run, error) {
	following, stopped := ctx, false
	for {
		before := r.last
		err := r.print(following, id)
		if err == nil {
			var run *client.Run
			if run, err = r.c.Run(following, id, true); err == nil && run.Status.Ended() {
				return run, nil
			}
		}
		if err == nil && r.last == before {
			err = backoff.Sleep(following, pause)
		}
		switch {
		case err == nil:
		case ctx.Err() == nil:
			return nil, err
		case stopped:
			return nil, fmt.Errorf("run %s was asked to stop but is still running: %w", id, err)
		default:
			stopped = true
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
			defer cancel()
			following = late //nolint:fatcontext // once, since stopped is set
			refused := (*client.Error)(nil)
			if _, err := r.c.Cancel(late, id); err != nil && !(errors.As(err, &refused) && refused.Status == http.StatusConflict) { // it has ended meanwhile
				return nil, fmt.Errorf("stop run %s: %w", id, err)
			}
		}
	}
}

// print prints the events of a run until it ends or waits.
func (r *remoteRun) print(ctx context.Context, id string) error {
	for e, err := range r.c.Events(ctx, id, r.last) {
		if err != nil {
			return err
		}
		r.last = e.Seq
		if err := r.event(e); err != nil {
			return err
		}
	}
	return nil
}

// event shows an event.
func (r *remoteRun) event(e client.Event) error {
	var known flow.Event
	if err := json.Unmarshal(e.JSON, &known); err != nil {
		return fmt.Errorf("read an event: %w", err)
	}
	r.a.report.Event(known)
	r.stream.event(known)
	if known.Type == flow.EventRunEnd {
		if ms, ok := known.Field("duration_ms").(float64); ok {
			r.elapsed = time.Duration(ms * float64(time.Millisecond))
		}
		r.errorType = known.Text("error_type")
	}
	return nil
}

// finish prints the result of a run and returns the exit code as an error.
func (r *remoteRun) finish(run *client.Run) error {
	if run.ErrorType == "" {
		run.ErrorType = r.errorType
	}
	res, err := resultOf(run)
	if err != nil {
		return err
	}
	res.Elapsed = r.elapsed
	if lost := r.stream.end(res.State); lost != nil && r.a.stdout.lost() == nil {
		r.a.logger(r.flags.reportFlags).Warn("the stream of events ended early", "error", lost)
	}
	a, f := r.a, r.flags
	a.report.Close()
	a.report.Summary(res, a.mask.Text)
	resume := r.resumeCommand(res)
	if res.Status != flow.Done {
		a.report.Checkpoint("on "+a.server, resume)
		return &exitError{code: codeOf(res)}
	}
	if res.FailedBranches > 0 {
		a.report.Retry(resume + " --retry-failed")
	}
	local := &runFlags{Output: f.Output, Stream: f.Stream, FailOnState: f.FailOnState}
	if err := a.deliver(local, res.State); err != nil {
		return fmt.Errorf("write the final state: %w", err)
	}
	return local.failures(res.State)
}

// resumeCommand returns the command line that resumes a run.
func (r *remoteRun) resumeCommand(res *flow.Result) string {
	words := []string{hostFlag, r.a.server, "resume", res.RunID}
	if r.flags.TokenFile != "" {
		words = append(words, "--token-file", r.flags.TokenFile)
	}
	if r.flags.TLSCA != "" {
		words = append(words, "--tls-ca", r.flags.TLSCA)
	}
	for _, i := range res.Pending {
		if i.Kind == flow.InterruptAsk {
			words = append(words, "--answer", i.ID+"="+encoded(exampleAnswer(i)))
		}
	}
	return commandLine(words)
}

// resultOf returns the result of a run of a server.
func resultOf(run *client.Run) (*flow.Result, error) {
	res := &flow.Result{
		RunID: run.ID, Status: flow.Status(run.Status), FailedBranches: run.FailedBranches, Started: run.StartedAt,
		State: map[string]any{},
	}
	// The client's types have the JSON form of package flow.
	text, err := json.Marshal(run)
	if err == nil {
		err = json.Unmarshal(text, &struct {
			Pending  *[]flow.Interrupt `json:"pending"`
			Failures *[]flow.Failure   `json:"failures"`
			Usage    *flow.Usage       `json:"usage"`
		}{&res.Pending, &res.Failures, &res.Usage})
	}
	if err == nil && len(run.State) > 0 {
		var state any
		state, err = value.Decode(run.State)
		res.State, _ = state.(map[string]any)
	}
	if err != nil {
		return nil, fmt.Errorf("read run %s: %w", run.ID, err)
	}
	switch run.Status {
	case client.Done, client.Waiting:
	case client.Parked:
		res.Status = flow.Failed
		fallthrough
	default:
		res.Err = failureOf(run)
	}
	return res, nil
}

// remoteFailure is the reason why a run of a server failed or was stopped.
type remoteFailure struct {
	text  string
	cause error
}

func (e *remoteFailure) Error() string { return e.text }
func (e *remoteFailure) Unwrap() error { return e.cause }

func failureOf(run *client.Run) error {
	e := &remoteFailure{text: run.Error}
	without := "the run has failed, and the server has no reason"
	if run.Status == client.Stopped {
		without = "the run was stopped"
	}
	e.text = cmp.Or(e.text, run.Parked, without)
	if e.cause = (&tea.Error{Type: tea.ErrorType(run.ErrorType), Message: e.text}); run.Status == client.Stopped && run.ErrorType == string(tea.BudgetExceeded) {
		e.cause = &flow.BudgetError{Limit: e.text}
	}
	return e
}

// serverError returns the exit code for an error of the server: an invalid request is
// a usage error.
func serverError(err error) error {
	refused := (*client.Error)(nil)
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return usageErrorf("%w\n  hint: name the file of a token with --token-file or TEA_TOKEN_FILE", err)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return usageError(err)
	}
	return err
}
