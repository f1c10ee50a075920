package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/conform"
)

// agent calls actions of one instance.
type agent struct {
	teatest.Instance
	host *teatest.Host
}

func openAgent(t *testing.T, target teatest.Target, host *teatest.Host, memory map[string]any) *agent {
	t.Helper()
	raw, err := json.Marshal(memory)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := target.Open(t.Context(), tea.Settings{"memory": raw})
	if err != nil {
		t.Fatal(err)
	}
	if host == nil {
		host = &teatest.Host{}
	}
	return &agent{Instance: instance, host: host}
}

// linkedAgents runs a test on every database of this build, linked in.
func linkedAgents(t *testing.T, host func() *teatest.Host, test func(t *testing.T, a *agent)) {
	t.Helper()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			a := openAgent(t, teatest.Linked(memory.Bundle()), host(), map[string]any{"path": t.TempDir(), "engine": engine})
			t.Cleanup(func() { a.close(t) })
			test(t, a)
		})
	}
}

func (a *agent) close(t *testing.T) {
	t.Helper()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// try calls an action.
func (a *agent) try(ctx context.Context, action string, params map[string]any) (map[string]any, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	answer, err := a.Invoke(ctx, &tea.Request{Action: action, Params: tea.RawPayload(raw), Call: tea.Call{Attempt: 1}, Host: a.host})
	if err != nil {
		return nil, err
	}
	result, err := answer.Result.Value()
	object, _ := result.(map[string]any)
	return object, err
}

// do calls an action that must succeed.
func (a *agent) do(t *testing.T, action string, params map[string]any) map[string]any {
	t.Helper()
	result, err := a.try(t.Context(), action, params)
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	if result["success"] != true {
		t.Fatalf("%s: no success in %v", action, result)
	}
	delete(result, "success")
	return result
}

// fails calls an action that must fail so.
func (a *agent) fails(t *testing.T, want tea.ErrorType, action string, params map[string]any) string {
	t.Helper()
	result, err := a.try(t.Context(), action, params)
	var e *tea.Error
	if !errors.As(err, &e) || e.Type != want {
		t.Fatalf("%s %v: got %v and error %v, want a %s", action, params, result, err, want)
	}
	return e.Message
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestShortTermMemory(t *testing.T) {
	t.Parallel()
	a := openAgent(t, teatest.Linked(memory.Bundle()), nil, map[string]any{"path": t.TempDir(), "short_term": map[string]any{"max_bytes": 4096}})
	defer a.close(t)
	same(t, "store", a.do(t, "memory.store", map[string]any{"key": "k", "value": map[string]any{"n": 1}}),
		map[string]any{"stored": true, "key": "k", "namespace": "default"})
	same(t, "retrieve", a.do(t, "memory.retrieve", map[string]any{"key": "k"}),
		map[string]any{"value": map[string]any{"n": int64(1)}, "found": true, "key": "k"})
	same(t, "another namespace", a.do(t, "memory.retrieve", map[string]any{"key": "k", "namespace": "other", "default": "d"}),
		map[string]any{"value": "d", "found": false, "key": "k"})
	a.do(t, "memory.store", map[string]any{"key": "null", "value": nil})
	same(t, "null", a.do(t, "memory.retrieve", map[string]any{"key": "null", "default": 1}), map[string]any{"value": nil, "found": true, "key": "null"})
	same(t, "delete", a.do(t, "memory.delete", map[string]any{"key": "k"}), map[string]any{"deleted": true, "key": "k"})
	same(t, "delete again", a.do(t, "memory.delete", map[string]any{"key": "k"}), map[string]any{"deleted": false, "key": "k"})
	for _, params := range []map[string]any{
		{"key": "k"},
		{"value": 1},
		{"key": "", "value": 1},
		{"key": "k", "value": 1, "ttl": -1},
		{"key": "k", "value": 1, "ttl": 1e11},
		{"key": "k", "value": string(make([]byte, 5000))},
	} {
		a.fails(t, tea.ValidationError, "memory.store", params)
	}
	a.do(t, "memory.store", map[string]any{"key": "k", "value": 1, "ttl": 1e-12})
	same(t, "expired", a.do(t, "memory.retrieve", map[string]any{"key": "k"})["found"], false)
}

func TestShortTermMemoryOfALinkedBundleOutlivesItsInstances(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bundle := teatest.Linked(memory.Bundle())
	first := openAgent(t, bundle, nil, map[string]any{"path": dir})
	first.do(t, "memory.store", map[string]any{"key": "k", "value": 1})
	first.close(t)
	second := openAgent(t, bundle, nil, map[string]any{"path": dir})
	defer second.close(t)
	same(t, "found", second.do(t, "memory.retrieve", map[string]any{"key": "k"})["value"], int64(1))
	other := openAgent(t, bundle, nil, map[string]any{"path": t.TempDir()})
	defer other.close(t)
	same(t, "found in another folder", other.do(t, "memory.retrieve", map[string]any{"key": "k"})["found"], false)
}

// TestShortTermMemoryIsHandedOver starts real processes of the plugin: the
// test binary, which serves the bundle when it is started as one. The state
// moves as in a swap: the old process exports it, and the next one imports it.
func TestShortTermMemoryIsHandedOver(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEA_PLUGIN_COOKIE") != "" {
		serve.Main(memory.Bundle())
	}
	settings := map[string]any{"path": t.TempDir(), "engine": "sqlite"}
	elsewhere := map[string]any{"path": t.TempDir(), "engine": "sqlite"}
	old := startPlugin(t)
	a := openAgent(t, old, nil, settings)
	a.do(t, "memory.store", map[string]any{"key": "kept", "value": []any{"a", 1}, "ttl": 3600})
	a.do(t, "memory.store", map[string]any{"key": "kept too", "value": "x", "namespace": "n"})
	a.do(t, "ltm.store", map[string]any{"key": "last", "value": 1})
	closed := openAgent(t, old, nil, elsewhere)
	closed.do(t, "memory.store", map[string]any{"key": "kept", "value": "elsewhere"})
	closed.close(t)

	state := filepath.Join(t.TempDir(), "state")
	if err := a.Instance.(conform.Exporter).Export(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	old.Close()
	next := startPlugin(t)
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := next.Import(t.Context(), tea.Settings{"memory": raw}, state)
	if err != nil {
		t.Fatal(err)
	}
	b := &agent{Instance: instance, host: &teatest.Host{}}
	same(t, "after the swap", b.do(t, "memory.retrieve", map[string]any{"key": "kept"})["value"], any([]any{"a", int64(1)}))
	same(t, "in a namespace", b.do(t, "memory.retrieve", map[string]any{"key": "kept too", "namespace": "n"})["value"], "x")
	same(t, "long-term", b.do(t, "ltm.retrieve", map[string]any{"key": "last"})["value"], int64(1))
	b.close(t)

	// A run that ends and one that begins in the same process.
	c := openAgent(t, next, nil, settings)
	same(t, "in the same process", c.do(t, "memory.retrieve", map[string]any{"key": "kept"})["found"], true)
	c.close(t)
	d := openAgent(t, next, nil, elsewhere)
	same(t, "in another folder", d.do(t, "memory.retrieve", map[string]any{"key": "kept"})["value"], "elsewhere")
	d.close(t)
}

func startPlugin(t *testing.T) *teatest.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self, "-test.run=^TestShortTermMemoryIsHandedOver$")
	process, err := teatest.Start(t.Context(), cmd, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Close)
	return process
}
