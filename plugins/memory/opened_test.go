package memory_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// opened is the bundle with settings, linked in.
type opened struct {
	t        *testing.T
	instance teatest.Instance
}

func openBundle(t *testing.T, settings map[string]any) (*opened, error) {
	t.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := teatest.Linked(memory.Bundle()).Open(t.Context(), tea.Settings{"memory": raw})
	if err != nil {
		return nil, err
	}
	return &opened{t: t, instance: instance}, nil
}

func mustOpen(t *testing.T, settings map[string]any) *opened {
	t.Helper()
	o, err := openBundle(t, settings)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *opened) close() {
	o.t.Helper()
	if err := o.instance.Close(); err != nil {
		o.t.Error(err)
	}
}

func (o *opened) call(action string, params map[string]any) (map[string]any, error) {
	o.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	resp, err := o.instance.Invoke(o.t.Context(), &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1}, Host: &teatest.Host{}})
	if err != nil {
		return nil, err
	}
	v, err := resp.Result.Value()
	if err != nil {
		o.t.Fatal(err)
	}
	return v.(map[string]any), nil
}

func (o *opened) must(action string, params map[string]any) map[string]any {
	o.t.Helper()
	result, err := o.call(action, params)
	if err != nil {
		o.t.Fatalf("%s: %v", action, err)
	}
	return result
}

func typeOf(err error) tea.ErrorType {
	var e *tea.Error
	if errors.As(err, &e) {
		return e.Type
	}
	return ""
}

// eachEngine runs a test for every database; one that is not in this build is
// skipped.
func eachEngine(t *testing.T, test func(t *testing.T, engine string)) {
	t.Helper()
	for _, engine := range []string{"sqlite", "duckdb"} {
		t.Run(engine, func(t *testing.T) {
			if !slices.Contains(engines(), engine) {
				t.Skip("this build has no DuckDB")
			}
			test(t, engine)
		})
	}
}

// contains says whether an error mentions something.
func contains(err error, words string) bool {
	return err != nil && strings.Contains(err.Error(), words)
}

// withoutRaceDetector skips a test of large values in SQLite under the race detector,
// which slows it down tenfold. make test also runs it in the build without C, which has
// no race detector.
func withoutRaceDetector(t *testing.T) {
	t.Helper()
	if peertest.RaceDetector {
		t.Skip("it runs in the build without C")
	}
}
