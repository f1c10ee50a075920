//go:build js

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall/js"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// server answers the calls of one page.
type server struct {
	page    page
	options openOptions
	host    *host.Host
	log     *slog.Logger
	loaded  loaded

	mu      sync.Mutex
	running map[string]func(error) // cancels the run of a call
}

// request has the parameters of all operations; each uses some of them.
type request struct {
	// Source is the text of a workflow, and File the name of its file.
	Source *string `json:"source"`
	File   string  `json:"file"`

	Name   string          `json:"name"`
	Params json.RawMessage `json:"params"`
	Format string          `json:"format"`

	Run             string          `json:"run"`
	After           int64           `json:"after"`
	Input           json.RawMessage `json:"input"`
	Answers         json.RawMessage `json:"answers"`
	Secrets         json.RawMessage `json:"secrets"`
	Env             json.RawMessage `json:"env"`
	Durability      flow.Durability `json:"durability"`
	InterruptBefore []string        `json:"interrupt_before"`
	InterruptAfter  []string        `json:"interrupt_after"`
	RetryFailed     bool            `json:"retry_failed"`
	Hold            bool            `json:"hold"`
	Force           bool            `json:"force"`
	Migrate         bool            `json:"migrate"`
}

// answer executes an operation and sends its outcome to the page.
func (s *server) answer(ctx context.Context, op, params string, key js.Value) {
	result, err := s.do(ctx, op, params, key)
	text := []byte(nil)
	if err == nil {
		text, err = value.Encode(map[string]any{"result": result})
	}
	if err != nil {
		text = encodeError(err)
	}
	s.page.flush()
	s.page.Call("answer", key, string(text))
}

func (s *server) do(ctx context.Context, op, params string, key js.Value) (any, error) {
	var r request
	if err := json.Unmarshal([]byte(params), &r); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the parameters of %s: %w", op, err)
	}
	switch op {
	case "run", "resume":
		return s.execute(ctx, op, &r, key)
	case "action":
		return s.call(ctx, &r, key)
	case "cancel":
		s.mu.Lock()
		stop := s.running[r.Name]
		s.mu.Unlock()
		if stop != nil {
			stop(context.Canceled)
		}
		return stop != nil, nil
	case "validate":
		return s.validate(&r)
	case "inspect":
		wf, err := s.load(&r)
		if err != nil {
			return nil, err
		}
		defer wf.Close()
		text, err := wf.Inspect(r.Format)
		if err != nil {
			return nil, tea.Errorf(tea.ValidationError, "%w", err)
		}
		return string(text), nil
	case "actions":
		entries, err := s.host.Actions()
		if err != nil {
			return nil, err
		}
		return value.From(entries)
	case "show":
		return s.show(&r)
	case "runs", "events", "remove":
		return s.stored(op, &r)
	case "panic": // for tests of the restart
		panic("panic was called")
	}
	return nil, tea.Errorf(tea.NotFound, "unknown operation %q", op)
}

// path returns the absolute path of a workflow file.
func (s *server) path(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(s.options.Dir, file)
}

func (s *server) loadOptions() host.LoadOptions {
	o := host.LoadOptions{}
	if len(s.options.Config) > 0 && string(s.options.Config) != "null" {
		o.Config = string(s.options.Config)
	}
	return o
}

// load loads a workflow from its text or its file.
func (s *server) load(r *request) (*host.Workflow, error) {
	if r.Source != nil {
		return s.host.Parse(s.path(r.File), []byte(*r.Source), s.loadOptions())
	}
	return s.host.Load(s.path(r.File), s.loadOptions())
}

func (s *server) validate(r *request) (any, error) {
	o := s.loadOptions()
	if r.Source == nil {
		return diagnostics(s.host.Validate(s.path(r.File), o))
	}
	wf, err := s.load(r)
	if wf != nil {
		defer wf.Close()
		return diagnostics(wf.Warnings())
	}
	var found host.Diagnostics
	if errors.As(err, &found) {
		return diagnostics(found)
	}
	return nil, err
}

func diagnostics(found host.Diagnostics) (any, error) {
	if found == nil {
		found = host.Diagnostics{}
	}
	return value.From(found)
}

// call calls one action.
func (s *server) call(ctx context.Context, r *request, key js.Value) (any, error) {
	params, err := object(r.Params)
	if err != nil {
		return nil, err
	}
	o, err := s.runOptions(r, key)
	if err != nil {
		return nil, err
	}
	load := func() (*host.Workflow, error) {
		wf, _, err := s.host.LoadCall(r.Name, params, s.loadOptions())
		return wf, err
	}
	name := callKey(r.Name, params)
	wf, wasLoaded, err := s.loaded.take(name, load)
	if err != nil {
		return nil, err
	}
	defer s.loaded.put(name, wf)
	o.Input, o.CheckpointDir, o.Events = host.CallInput(params), "", nil
	res, err := wf.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		failure := tea.AsError(res.Err)
		if wasLoaded && failure.Type == tea.ValidationError { // loading reports all mistakes in parameters
			if again, err := load(); err != nil {
				return nil, err
			} else {
				_ = again.Close() // it has opened nothing
			}
		}
		return nil, failure
	}
	mask, err := wf.Mask(o.Secrets)
	if err != nil {
		return nil, err
	}
	return mask.Value(res.State[host.CallResult]), nil
}

// track returns a context for a call, which the operation cancel cancels.
func (s *server) track(key js.Value) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	id := key.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[id] = cancel
	return ctx, func() {
		s.mu.Lock()
		delete(s.running, id)
		s.mu.Unlock()
		cancel(nil)
	}
}

// keep writes the text of a workflow to its file, for resumes.
func (s *server) keep(r *request) error {
	if r.Source == nil || r.Durability == flow.DurabilityOff {
		return nil
	}
	path := s.path(r.File)
	if old, err := os.ReadFile(path); err == nil && string(old) == *r.Source {
		r.Source = nil
		return nil
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = atomicfile.Write(path, 0o600, func(w io.Writer) error {
			_, err := io.WriteString(w, *r.Source)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("keep the workflow: %w", err)
	}
	r.Source = nil
	return nil
}
