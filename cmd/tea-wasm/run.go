//go:build js

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"syscall/js"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// runOptions returns the options of a run whose events go to the page under
// key.
func (s *server) runOptions(r *request, key js.Value) (o host.RunOptions, err error) {
	var faults [4]error
	sent := &events{key: key}
	o = host.RunOptions{
		CheckpointDir: s.options.RunsDir, Durability: r.Durability,
		InterruptBefore: r.InterruptBefore, InterruptAfter: r.InterruptAfter,
		RetryFailed: r.RetryFailed, Hold: r.Hold, Force: r.Force, Migrate: r.Migrate,
		Events: func(e flow.Event) { s.page.emit(sent, e) },
	}
	if o.Durability == "" {
		o.Durability = flow.DurabilityExit
	}
	o.Input, faults[0] = object(r.Input)
	o.Answers, faults[1] = object(r.Answers)
	o.Secrets, faults[2] = object(r.Secrets)
	o.Env, faults[3] = object(r.Env)
	return o, errors.Join(faults[:]...)
}

// object decodes a JSON object; an empty text and null are nil.
func object(text json.RawMessage) (map[string]any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	v, err := value.Decode(text)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if v != nil && !ok {
		return nil, tea.Errorf(tea.ValidationError, "expected an object, got %s", value.Brief(v))
	}
	return m, nil
}

// execute runs a workflow or resumes a run.
func (s *server) execute(ctx context.Context, op string, r *request, key js.Value) (any, error) {
	o, err := s.runOptions(r, key)
	if err != nil {
		return nil, err
	}
	if _, err := flow.ParseDurability(string(o.Durability)); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%w", err)
	}
	wf, done, err := s.prepare(op, r, &o)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := wf.CheckNodes(append(o.InterruptBefore, o.InterruptAfter...)...); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "interrupt: %w", err)
	}
	mask, err := wf.Mask(o.Secrets)
	if err != nil {
		return nil, err
	}
	var res *flow.Result
	if op == "resume" {
		res, err = wf.Resume(ctx, r.Run, o)
	} else {
		res, err = wf.Run(ctx, o)
	}
	if res == nil {
		return nil, &masked{err, mask}
	}
	return toResult(res, err, mask)
}

// prepare loads the workflow of a run. With a checkpoint it stores the workflow's
// files next to it. The caller calls done after the run.
func (s *server) prepare(op string, r *request, o *host.RunOptions) (wf *host.Workflow, done func(), err error) {
	if op == "resume" && r.Source == nil && r.File == "" {
		info, err := host.FindRun(o.CheckpointDir, r.Run)
		if err != nil {
			return nil, nil, notFound(err)
		}
		wf, err = s.loadRun(info, host.LoadRunOptions{Secrets: o.Secrets})
		return wf, func() { _ = wf.Close() }, err
	}
	text := ""
	if r.Source != nil {
		text = *r.Source
	} else if data, err := os.ReadFile(s.path(r.File)); err == nil { // otherwise loading reports it
		text = string(data)
	}
	if err := s.keep(r); err != nil {
		return nil, nil, err
	}
	key := textKey(s.path(r.File), text)
	wf, wasLoaded, err := s.loaded.take(key, func() (*host.Workflow, error) { return s.load(r) })
	if err != nil {
		return nil, nil, err
	}
	if !wasLoaded {
		s.warn(wf)
	}
	done = func() { s.loaded.put(key, wf) }
	if o.Durability == flow.DurabilityOff {
		return wf, done, nil
	}
	source, err := wf.Source()
	if err == nil {
		err = source.Keep(o.CheckpointDir)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return wf, done, nil
}

// notFound reports a run that does not exist, or a name that no run has.
func notFound(err error) error { return tea.Errorf(tea.NotFound, "%w", err) }

// loadRun loads the workflow of a run. A checkpoint does not store secrets of a
// configuration; the page still has them.
func (s *server) loadRun(info *host.RunInfo, o host.LoadRunOptions) (*host.Workflow, error) {
	wf, err := s.host.LoadRun(info, o)
	if missing := (*host.ConfigSecretError)(nil); errors.As(err, &missing) {
		if o.Config = s.loadOptions().Config; o.Config != "" {
			return s.host.LoadRun(info, o)
		}
	}
	return wf, err
}

// toResult converts the outcome of a run, with *** in place of secrets.
// recording is the error of its checkpoint.
func toResult(res *flow.Result, recording error, mask host.Mask) (any, error) {
	pending, err := value.From(res.Pending)
	if err != nil {
		return nil, err
	}
	failures, err := value.From(res.Failures)
	if err != nil {
		return nil, err
	}
	usage, err := value.From(res.Usage)
	if err != nil {
		return nil, err
	}
	out := map[string]any{
		"run_id": res.RunID, "status": string(res.Status), "state": mask.Value(res.State), "pending": mask.Value(pending),
		"failures": mask.Value(failures), "failed_branches": int64(res.FailedBranches), "usage": usage,
		"checkpoint": res.Checkpoint, "elapsed_ms": float64(res.Elapsed.Microseconds()) / 1000,
	}
	if cause := errors.Join(res.Err, recording); cause != nil {
		if recording == nil {
			cause = res.Err
		}
		if out["error"], err = value.From(toFailure(cause, mask)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// show returns the graph of a run as SVG, coloured by status.
func (s *server) show(r *request) (any, error) {
	runs, err := checkpoints.Open(s.options.RunsDir)
	if err != nil {
		return nil, err
	}
	info, err := host.FindRun(s.options.RunsDir, r.Run)
	if err != nil {
		return nil, notFound(err)
	}
	wf, err := s.host.LoadRun(info, host.LoadRunOptions{View: true})
	if err != nil {
		return nil, err
	}
	defer wf.Close()
	graph := wf.RunGraph()
	if err := runs.Events(r.Run, 0, func(_ int64, line []byte) error { return graph.Add(line) }); err != nil {
		return nil, err
	}
	entry, err := runs.Entry(r.Run)
	if err != nil {
		return nil, err
	}
	svg, err := graph.Inspect("svg", entry.Status == flow.Running)
	return string(svg), err
}

// stored reads or removes runs.
func (s *server) stored(op string, r *request) (any, error) {
	runs, err := checkpoints.Open(s.options.RunsDir)
	if errors.Is(err, fs.ErrNotExist) && op == "runs" {
		return []any{}, nil
	}
	if err != nil {
		return nil, err
	}
	switch op {
	case "remove":
		return nil, runs.Remove(r.Run)
	case "events":
		events := []any{}
		err := runs.Events(r.Run, r.After, func(_ int64, line []byte) error {
			v, err := value.Decode(line)
			events = append(events, v)
			return err
		})
		return events, err
	}
	entries, err := runs.List()
	if err != nil {
		return nil, err
	}
	if entries == nil {
		return []any{}, nil
	}
	return value.From(entries)
}
