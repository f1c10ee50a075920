package trace_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/trace"
)

func TestFlagsTakePrecedenceOverSettings(t *testing.T) {
	t.Parallel()
	settings := map[string]any{"trace": map[string]any{
		"exporter": "otlp", "endpoint": "http://c:4318", "file": "a.jsonl", "contents": true, "headers": map[string]any{"Authorization": "x"},
	}}
	o := trace.Options{File: "flag.jsonl"}
	if err := o.Read(settings); err != nil {
		t.Fatal(err)
	}
	want := trace.Options{Exporter: trace.OTLP, Endpoint: "http://c:4318", File: "flag.jsonl", Contents: true, Headers: map[string]string{"Authorization": "x"}}
	if diff := cmp.Diff(want, o, cmpopts.EquateComparable(host.Mask{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, none := range []map[string]any{nil, {"trace": nil}, {"llm": map[string]any{}}} {
		o := trace.Options{}
		if err := o.Read(none); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(trace.Options{}, o, cmpopts.EquateComparable(host.Mask{})); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestWrongSettingsNameTheKey(t *testing.T) {
	t.Parallel()
	for wrong, settings := range map[string]any{
		"settings.trace: expected object, got string":                     "otlp",
		"settings.trace.contents: expected boolean, got string":           map[string]any{"contents": "yes"},
		"settings.trace.file: expected string, got integer":               map[string]any{"file": int64(3)},
		"settings.trace.headers.X: expected string, got boolean":          map[string]any{"headers": map[string]any{"X": true}},
		`settings.trace: unknown key "exportr"; did you mean "exporter"?`: map[string]any{"exportr": "otlp"},
	} {
		var o trace.Options
		if err := o.Read(map[string]any{"trace": settings}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("got %v, want %q", err, wrong)
		}
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]trace.Options{
		"unknown exporter":     {Exporter: "jaeger"},
		"no file":              {Exporter: trace.File},
		"no such folder":       {File: filepath.Join(t.TempDir(), "none", "f")},
		"endpoint without URL": {Exporter: trace.OTLP, Endpoint: "collector:4318"},
	} {
		if tracer, err := trace.New(o); err == nil {
			t.Errorf("%s: no error", name)
			if err := tracer.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}
