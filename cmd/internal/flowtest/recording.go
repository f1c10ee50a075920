package flowtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// Recording names the file with the results of actions that only read.
type Recording struct {
	File string
	// Actions are names of actions, or namespaces.
	Actions []string
}

// covers reports whether the recording has the calls of an action.
func (r *Recording) covers(action string) bool {
	return r != nil && slices.ContainsFunc(r.Actions, func(name string) bool {
		return action == name || strings.HasPrefix(action, name+".")
	})
}

// mostRecorded is the maximum size of a recording.
const mostRecorded = 64 << 20

// tape is the content of a recording: its lines, in the order of the calls, by
// [callKey].
type tape map[string][]map[string]any

// callKey identifies calls with the same action and parameters.
func callKey(action string, params any) (string, error) {
	raw, err := value.Encode(params)
	return action + " with " + string(raw), err
}

// howToRecord is the hint of errors about recordings.
const howToRecord = "`tea test --record` makes it with the real machine"

func readTape(file string) (tape, error) {
	data, err := confine.ReadRegular(file, mostRecorded)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(data) == 0:
		return nil, fmt.Errorf("the recording %s is missing or empty\nhint: %s", file, howToRecord)
	case err != nil:
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	t := tape{}
	for number := 1; len(data) > 0; number++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		err := errors.New("the line is truncated")
		if whole {
			err = t.add(line)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: damaged recording: %w\nhint: %s", file, number, err, howToRecord)
		}
		data = rest
	}
	return t, nil
}

func (t tape) add(line []byte) error {
	v, err := value.Decode(line)
	if err != nil {
		return err
	}
	call, _ := v.(map[string]any)
	action, _ := call["action"].(string)
	failure, failed := call["error"]
	_, done := call["result"]
	if action == "" || failed == done || failed && asFailure(map[string]any{"error": failure}) == nil {
		return errors.New("a line has action, params and either result or error")
	}
	key, err := callKey(action, call["params"])
	t[key] = append(t[key], call)
	return err
}

// write replaces a file with the recording, sorted by action and parameters.
func (t tape) write(file string) (err error) {
	var out []byte
	for _, key := range slices.Sorted(maps.Keys(t)) {
		for _, call := range t[key] {
			if out, err = value.Append(out, call); err != nil {
				return err
			}
			out = append(out, '\n')
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	return atomicfile.Write(file, 0o600, func(w io.Writer) error {
		_, err := w.Write(out)
		return err
	})
}

type invoke = func(context.Context, *tea.Request) (*tea.Response, error)

// middleware wraps the calls of a run: it records those of the test's recording or
// plays them back, and notes the writes.
func (r *testRun) middleware(ctx context.Context, req *tea.Request, next invoke) (*tea.Response, error) {
	entry := r.wf.Action(req.Action)
	write := req.Once || entry == nil || !entry.Reads
	if _, replaced := r.test.Actions[req.Action]; !replaced {
		if entry != nil && entry.Reads && r.test.Recording.covers(entry.Name) {
			return r.read(ctx, entry.Name, req, next)
		}
		req.DryRun = write && r.plays
	}
	res, err := next(ctx, req)
	if err == nil && write {
		params, _ := req.Params.Shared() // the action has decoded them
		r.mu.Lock()
		defer r.mu.Unlock()
		r.writes = append(r.writes, map[string]any{"action": req.Action, "params": params})
	}
	return res, err
}

// read records a call or plays it back. The last recorded result repeats.
func (r *testRun) read(ctx context.Context, action string, req *tea.Request, next invoke) (*tea.Response, error) {
	params, err := req.Params.Value()
	params = r.mask.Value(params)
	key, keyErr := callKey(action, params)
	if err := errors.Join(err, keyErr); err != nil {
		return nil, err
	}
	if !r.plays {
		res, err := next(ctx, req)
		if failure := r.record(key, action, params, res, err); failure != nil {
			return nil, failure
		}
		return res, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.tape[key]
	if len(calls) == 0 {
		r.misses = append(r.misses, r.missing(key, action))
		return nil, tea.Errorf(tea.NotFound, "the recording has no call of %s", key)
	}
	call := calls[min(r.played[key], len(calls)-1)]
	r.played[key]++
	if failure, failed := call["error"]; failed {
		return nil, asFailure(map[string]any{"error": failure})
	}
	return tea.Respond(value.Clone(call["result"])), nil
}

// record adds a call to the recording, unless it was canceled or waits for an answer.
func (r *testRun) record(key, action string, params any, res *tea.Response, err error) error {
	var failure *tea.Error
	var result any
	kind := "result"
	switch {
	case errors.As(err, &failure) && failure.Type != tea.Canceled:
		kind = "error"
		result, err = value.From(map[string]any{"type": string(failure.Type), "message": failure.Message, "retryable": failure.Retryable, "source": failure.Source, "details": failure.Details})
	case err != nil || res == nil:
		return nil
	default:
		result, err = res.Result.Value()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tape[key] = append(r.tape[key], map[string]any{"action": action, "params": params, kind: r.mask.Value(result)})
	return err
}

// missing describes a call that the recording lacks.
func (r *testRun) missing(key, action string) string {
	for _, other := range slices.Sorted(maps.Keys(r.tape)) {
		if strings.HasPrefix(other, action+" ") {
			return fmt.Sprintf("the recording %s has no call of %s\nhint: it has %s; %s", r.test.Recording.File, key, other, howToRecord)
		}
	}
	return fmt.Sprintf("the recording %s has no call of %s\nhint: %s", r.test.Recording.File, key, howToRecord)
}
