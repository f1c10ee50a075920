package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

type radioSettings struct {
	Stations []string `json:"stations,omitempty"`
	File     string   `json:"file,omitempty" format:"path" default:"stations.json"`
}

type tuning struct {
	Volume int `json:"volume"`
}

// radio is a bundle with an action for each station in the settings.
func radio() *tea.Bundle {
	play := func(_ context.Context, req *tea.Request) (*tea.Response, error) {
		return tea.Respond(map[string]any{"playing": req.Action}), nil
	}
	return &tea.Bundle{
		Name: "radio", Version: "1.0.0", Settings: map[string]*schema.Schema{"radio": schema.Of[radioSettings]()},
		Open: func(_ context.Context, s tea.Settings) (any, error) {
			var settings radioSettings
			return &settings, s.Decode("radio", &settings)
		},
		Actions: []tea.Action{tea.NewMethod("radio.list", "Lists the stations.", func(s *radioSettings, _ context.Context, _ *tea.Request, _ struct{}) (map[string]any, error) {
			actions := []any{}
			for _, name := range s.Stations {
				actions = append(actions, map[string]any{"name": "radio." + name, "summary": "Plays.", "params": schema.Of[tuning]()})
			}
			return map[string]any{"actions": actions}, nil
		})},
		Dynamic: &tea.Dynamic{DynamicActions: tea.DynamicActions{File: "radio.file", List: "radio.list"}, Handle: play},
	}
}

// tuned writes a workflow that calls an action of the radio.
func tuned(t *testing.T, dir, uses, with string) string {
	t.Helper()
	path := filepath.Join(dir, "flow.yaml")
	text := "settings: {radio: {stations: [jazz, news]}}\nnodes:\n  - {name: play, uses: " + uses + ", with: " + with + "}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newRadio(t *testing.T) *host.Host {
	t.Helper()
	h, err := host.New(host.Options{Bundles: []*tea.Bundle{radio()}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// store lists the actions of the radio and stores them.
func store(t *testing.T, h *host.Host, path string) {
	t.Helper()
	list, err := h.LoadDynamicList("radio", path, host.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer list.Workflow.Close()
	res, err := list.Workflow.Run(t.Context(), host.RunOptions{Input: list.Input})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(res.State[host.CallResult])
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(filepath.Dir(path), "stations.json"); list.File != want {
		t.Errorf("the file is %s, want %s", list.File, want)
	}
	if err := os.WriteFile(list.File, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDynamicActions(t *testing.T) {
	t.Parallel()
	h, dir := newRadio(t), t.TempDir()
	path := tuned(t, dir, "radio.jazz", "{volume: loud}")

	// Without the file calls are not checked.
	diags := h.Validate(path, host.LoadOptions{})
	if text := diags.Error(); diags.HasErrors() || !strings.Contains(text, "radio.jazz and its parameters are not checked") || !strings.Contains(text, "tea plugin refresh radio --workflow FILE") {
		t.Errorf("without the file: %s", text)
	}
	wf, err := h.Load(path, host.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer wf.Close()
	res, err := wf.Run(t.Context(), host.RunOptions{})
	if err != nil || res.State["playing"] != "radio.jazz" {
		t.Errorf("run: %v, %v", res, err)
	}

	// With it they are; a broken workflow does not prevent a new list.
	store(t, h, path)
	for _, c := range []struct{ uses, with, want string }{
		{"radio.jazz", "{volume: 3}", ""},
		{"radio.jazz", "{volume: loud}", `the parameter "volume": expected integer`},
		{"radio.jazz", "{}", `radio.jazz needs the parameter "volume"`},
		{"radio.jaz", "{}", `did you mean "radio.jazz"?`},
		{"radio.list", "{}", ""},
	} {
		diags := h.Validate(tuned(t, dir, c.uses, c.with), host.LoadOptions{})
		if text := diags.Error(); diags.HasErrors() != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %s, want %q", c.uses, c.with, text, c.want)
		}
	}
	store(t, h, tuned(t, dir, "radio.jaz", "{}"))
	if diff := cmp.Diff([]string{"radio"}, h.DynamicBundles()); diff != "" {
		t.Errorf("bundles (-want +got):\n%s", diff)
	}
}

func TestDamagedFileOfDynamicActions(t *testing.T) {
	t.Parallel()
	h, dir := newRadio(t), t.TempDir()
	path := tuned(t, dir, "radio.jazz", "{volume: 3}")
	file := filepath.Join(dir, "stations.json")
	for text, want := range map[string]string{
		"":                                      "unexpected end of JSON input",
		`{"actions": [{"name": "file.write"}]}`: "file.write is not a dynamic action of radio",
		`{"actions": [{"name": "radio.list"}]}`: "radio.list appears twice",
		`{"actions": [{"name": "radio.JAZZ"}]}`: "expected namespace.verb",
		`{"actions": [{"name": "radio.a", "params": {"type": "strange"}}]}`: "parameters of radio.a",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		diags := h.Validate(path, host.LoadOptions{})
		if got := diags.Error(); !diags.HasErrors() || !strings.Contains(got, want) || !strings.Contains(got, file) || !strings.Contains(got, "tea plugin refresh radio") {
			t.Errorf("%s: %s", text, got)
		}
		store(t, h, path) // replaces it
		if diags := h.Validate(path, host.LoadOptions{}); diags.HasErrors() {
			t.Errorf("%s: after a refresh: %s", text, diags.Error())
		}
	}
}

func TestBundleWithoutDynamicActions(t *testing.T) {
	t.Parallel()
	h, path := newRadio(t), tuned(t, t.TempDir(), "radio.jazz", "{}")
	var e *tea.Error
	if _, err := h.LoadDynamicList("json", path, host.LoadOptions{}); !errors.As(err, &e) || e.Type != tea.NotFound {
		t.Errorf("got %v", err)
	}
	for want, d := range map[string]*tea.Dynamic{
		`"tv.file"`:   {DynamicActions: tea.DynamicActions{File: "tv.file", List: "radio.list"}},
		`"radio.all"`: {DynamicActions: tea.DynamicActions{File: "radio.file", List: "radio.all"}},
		"no handler":  {DynamicActions: tea.DynamicActions{File: "radio.file", List: "radio.list"}},
	} {
		b := radio()
		b.Dynamic = d
		if err := b.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
