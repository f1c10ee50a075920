package engine

import (
	"context"
	"hash/fnv"
	"log/slog"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/state"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
)

// scope has the roots of templates.
type scope struct {
	frame *frame
	state *state.State
	// result is the root of output mappings and goto; nil if there is none.
	result any
	// joined are the branch results in a fan-in node.
	joined *joined
}

func (f *frame) scope(result any) scope {
	return scope{frame: f, state: f.state, result: result, joined: f.joined}
}

// Lookup returns the value of a root; unknown names are keys of the state.
func (s scope) Lookup(name string) (any, bool) {
	f := s.frame
	r := f.run
	switch name {
	case "state":
		return s.state.Values(), true
	case "variables":
		return orEmpty(f.graph.Workflow.Variables), true
	case "settings":
		return orEmpty(r.settings(f.graph.Settings)), true
	case "secrets":
		return orEmpty(r.o.Secrets.Values()), true
	case "env":
		return orEmpty(r.o.Env), true
	case "nodes":
		return orEmpty(f.allResults()), true
	case "run":
		return map[string]any{"id": r.o.RunID, "started_at": r.startedAt().UTC().Format(time.RFC3339), "data_dir": r.o.Graph.Workflow.DataDir}, true
	case "checkpoint":
		return r.checkpointRoot(), true
	}
	if name == "result" && s.result != nil {
		return s.result, true
	}
	if name == "parallel_results" && s.joined != nil {
		return s.joined.entries(), true
	}
	if v, ok := f.itemVar(name); ok {
		return v, true
	}
	if v, ok := s.state.Get(name); ok {
		return v, true
	}
	return f.result(name)
}

// Required reports whether a missing member is an error: in what the file and its
// caller define, and for nodes that the file does not have.
func (s scope) Required(root, member string, depth int) bool {
	switch root {
	case "secrets":
		return true
	case "variables", "settings", "run", "checkpoint":
		return depth == 1 // deeper values are data, such as a table with a computed key
	case "nodes":
		return depth == 1 && !s.frame.hasNode(member)
	}
	return false
}

// settings returns a workflow's settings with the run's secrets.
func (r *run) settings(s *graph.Settings) map[string]any {
	values, err := s.Resolve(context.Background(), r.o.Secrets.Values())
	if err != nil {
		r.log.Warn("settings cannot be resolved", "error", r.o.Secrets.Text(err.Error()))
	}
	return values
}

func (r *run) startedAt() time.Time {
	if !r.o.StartedAt.IsZero() {
		return r.o.StartedAt
	}
	return r.started
}

func (r *run) checkpointRoot() map[string]any {
	m := map[string]any{"dir": nil, "last": nil}
	if r.o.CheckpointDir != "" {
		m["dir"] = r.o.CheckpointDir
	}
	if r.o.Journal != nil {
		m["last"] = r.o.Journal.Path()
	}
	return m
}

// Field returns a key of the state without sharing the whole state, or the result
// of a node under state.NAME if the state has no such key.
func (s scope) Field(root, key string) (any, bool) {
	switch root {
	case "nodes":
		return s.frame.result(key)
	case "state":
	default:
		return nil, false
	}
	if v, ok := s.state.Get(key); ok {
		return v, true
	}
	return s.frame.result(key)
}

// luaEnv returns the environment of a condition, which cannot call actions.
func (f *frame) luaEnv() script.Env {
	return script.Env{Steps: f.luaSteps(), State: f.state.View(), Globals: f, Missing: f.result, Modules: f.graph.Modules}
}

// luaEnv returns the environment of a chunk.
func (x *execution) luaEnv(c *script.Chunk) script.Env {
	f := x.frame
	env := f.luaEnv()
	env.Globals = x
	if !c.Calls() && !c.Reads("math") {
		return env
	}
	// The seed depends only on the path, so that equal runs draw equal numbers.
	seed := fnv.New64a()
	seed.Write([]byte(x.path))
	env.Seed = seed.Sum64()
	env.Action = func(ctx context.Context, name string, params any) (any, error) {
		return x.callTool(ctx, name, tea.AsPayload(params))
	}
	env.Log = func(level slog.Level, message string, fields map[string]any) {
		f.run.logEvent(x.node.Name, x.path, level, message, fields)
	}
	return env
}

// Lookup returns a global of a Lua condition of the frame's nodes.
func (f *frame) Lookup(name string) (any, bool) { return f.global(name, f.joined) }

// Lookup returns a global of the node's Lua code.
func (x *execution) Lookup(name string) (any, bool) { return x.frame.global(name, x.joined) }

// global returns a global of Lua code; joined are the results that a fan-in node sees.
func (f *frame) global(name string, joined *joined) (any, bool) {
	if name == "parallel_results" && joined != nil {
		return script.Objects{Len: len(joined.results), At: joined.entry}, true
	}
	if v, ok := f.itemVar(name); ok {
		return v, true
	}
	if name == "variables" {
		return orEmpty(f.graph.Workflow.Variables), true
	}
	return nil, false
}

// luaSteps returns the instruction limit of a piece of Lua code; 0 = it has a time
// limit.
func (f *frame) luaSteps() int {
	if f.run.o.Runtime != nil {
		return luaSteps
	}
	return 0
}

// logEvent turns a record of an action or script into an event and a log line.
func (r *run) logEvent(node string, path execpath.Path, level slog.Level, message string, fields map[string]any) {
	message = r.o.Secrets.Text(message)
	if r.listening() {
		all := []flow.Field{field("level", level.String()), field("message", message)}
		if len(fields) > 0 {
			all = append(all, field("fields", fields))
		}
		r.emit(flow.EventLog, node, path, all...)
	}
	attrs := []any{"node", string(path)}
	for k, v := range fields {
		attrs = append(attrs, k, r.o.Secrets.Redact(v))
	}
	r.log.Log(context.Background(), level, message, attrs...)
}
