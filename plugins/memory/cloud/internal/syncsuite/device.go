package syncsuite

import (
	"context"
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"

	"github.com/the-edge-agent/tea/plugins/memory"
)

// Remote is a memory on a server that the tests share between devices.
type Remote struct {
	// Settings are the settings of the memory: engine, url and so on.
	Settings map[string]any
	// Option adds the engine to the bundle.
	Option memory.Option
	// NoTables reports whether the memory has no tables of data.*, and NoFullText whether ltm.search accepts no
	// text.
	NoTables, NoFullText bool
	// TooLarge is the size of a text that is too large for a row of the memory, 0 = no limit.
	TooLarge int
}

// Device is a memory of a device.
type Device struct {
	t        testing.TB
	instance teatest.Instance
}

// Open opens a memory with settings. The test closes it.
func Open(t testing.TB, option memory.Option, settings map[string]any) Device {
	t.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := teatest.Linked(memory.Bundle(option)).Open(t.Context(), tea.Settings{"memory": raw})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := instance.Close(); err != nil {
			t.Error(err)
		}
	})
	return Device{t, instance}
}

// Device opens an embedded memory that synchronises with the remote one. further
// are settings of its sync.
func (r Remote) Device(t testing.TB, further map[string]any) Device {
	t.Helper()
	sync := maps.Clone(r.Settings)
	maps.Copy(sync, further)
	return Open(t, r.Option, map[string]any{"engine": "sqlite", "path": t.TempDir(), "sync": sync})
}

// Shared opens the remote memory itself. further are settings of the memory.
func (r Remote) Shared(t testing.TB, further map[string]any) Device {
	t.Helper()
	settings := maps.Clone(r.Settings)
	settings["path"] = t.TempDir()
	maps.Copy(settings, further)
	return Open(t, r.Option, settings)
}

// Call calls an action.
func (d Device) Call(ctx context.Context, action string, params map[string]any) (map[string]any, error) {
	if params == nil {
		params = map[string]any{}
	}
	host := &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){
		"sum": func(_ context.Context, params any) (any, error) {
			return map[string]any{"body": map[string]any{"value": valueOf(params, "local") + valueOf(params, "remote")}}, nil
		},
	}}
	resp, err := d.instance.Invoke(ctx, &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1}, Host: host})
	if err != nil {
		return nil, err
	}
	v, err := resp.Result.Value()
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil //nolint:forcetypeassert // all actions return objects
}

// valueOf returns the value of one side of a merge, 0 if it was deleted.
func valueOf(params any, side string) int64 {
	record, _ := params.(map[string]any)[side].(map[string]any)
	body, _ := record["body"].(map[string]any)
	n, _ := body["value"].(int64)
	return n
}

// Do calls an action that must succeed.
func (d Device) Do(action string, params map[string]any) map[string]any {
	d.t.Helper()
	result, err := d.Call(d.t.Context(), action, params)
	if err != nil {
		d.t.Fatalf("%s: %v", action, err)
	}
	return result
}

// Same compares members of a result.
func (d Device) Same(what string, got map[string]any, want map[string]any) {
	d.t.Helper()
	some := map[string]any{}
	for name := range want {
		some[name] = got[name]
	}
	if diff := cmp.Diff(want, some); diff != "" {
		d.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Values returns the values of the entries of a namespace by key.
func (d Device) Values(namespace string) map[string]any {
	d.t.Helper()
	values := map[string]any{}
	params := map[string]any{"namespace": namespace, "limit": 1000}
	for {
		r := d.Do("ltm.list", params)
		for _, e := range r["entries"].([]any) { //nolint:forcetypeassert // as the schema says
			entry := e.(map[string]any) //nolint:forcetypeassert // as the schema says
			values[entry["key"].(string)] = entry["value"]
		}
		next, _ := r["next_cursor"].(string)
		if next == "" {
			return values
		}
		params["cursor"] = next
	}
}
