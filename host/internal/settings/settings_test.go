package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/settings"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

type model struct {
	Provider string            `json:"provider,omitempty" enum:"openai,ollama"`
	Key      string            `json:"api_key,omitempty"`
	Heat     *float64          `json:"temperature,omitempty" minimum:"0" maximum:"2"`
	Tokens   int               `json:"max_tokens,omitempty" minimum:"1"`
	Stream   bool              `json:"stream,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Stops    []int             `json:"stops,omitempty"`
	Replay   struct {
		File string  `json:"file"`
		Low  float64 `json:"low,omitempty" atMost:"high"`
		High float64 `json:"high,omitempty"`
	} `json:"replay,omitzero"`
	Uses   []string          `json:"uses,omitempty" keyOf:"/models"`
	Models map[string]string `json:"models,omitempty"`
}

type object = map[string]any

var env = map[string]string{
	"HALF": "0.5", "FIVE": "5", "TEN": "10", "YES": "true", "WORD": "hunter2", "BIG": "12345678901234567890", "EMPTY": "", "MINUS": "-4711",
}

// check parses settings and checks them against the bundles' manifests.
func check(t *testing.T, text string, manifests ...tea.Manifest) (object, string) {
	t.Helper()
	if manifests == nil {
		manifests = []tea.Manifest{
			{Name: "llm", Settings: map[string]*schema.Schema{"llm": schema.Of[model](), "any": nil}},
		}
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	w, diags := spec.Parse("flow.yaml", []byte(text+"\nnodes: [{name: a}]\n"), spec.Options{LookupEnv: lookup})
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	settings.Declare(manifests...).Check(w, &diags)
	diags.Sort()
	return w.Settings, diags.Error()
}

func TestInvalidSettingsAreReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"fits": {"settings: {llm: {provider: ollama, temperature: 1, stream: true, headers: {X: y}, stops: [1]}}", ""},
		"unknown key": {
			"settings:\n  llm: {temprature: 1}",
			`flow.yaml:2:9: error TEA1604: settings.llm: unknown key "temprature" (settings.llm.temprature)` + "\n  hint: did you mean \"temperature\"?",
		},
		"unknown inside": {
			"settings:\n  llm: {replay: {file: f, rec: 1}}",
			`flow.yaml:2:27: error TEA1604: settings.llm.replay: unknown key "rec" (settings.llm.replay.rec)` + "\n  hint: there are: file, low, high",
		},
		"wrong type": {
			"settings:\n  llm: {temperature: warm}",
			`flow.yaml:2:22: error TEA1603: settings.llm.temperature: expected number, got string "warm" (settings.llm.temperature)`,
		},
		"quoted number": {
			"settings:\n  llm: {temperature: '0.5'}",
			`flow.yaml:2:22: error TEA1603: settings.llm.temperature: expected number, got string "0.5" (settings.llm.temperature)` + "\n  hint: write it without quotes: 0.5",
		},
		"a rule over several settings": {
			"settings:\n  llm: {replay: {file: f, low: 2,\n    high: 1}, uses: [olama], models: {ollama: m}}",
			`flow.yaml:2:32: error TEA1603: settings.llm.replay.low: must be at most high, which is 1, got 2 (settings.llm.replay.low)` + "\n" +
				`flow.yaml:3:22: error TEA1603: settings.llm.uses[0]: "olama" is not in models (settings.llm.uses[0])` + "\n  hint: did you mean \"ollama\"?",
		},
		"out of range": {
			"settings:\n  llm: {temperature: 3}",
			`flow.yaml:2:22: error TEA1603: settings.llm.temperature: must be at most 2, got 3 (settings.llm.temperature)`,
		},
		"no such value": {
			"settings:\n  llm: {provider: olama}",
			`flow.yaml:2:19: error TEA1603: settings.llm.provider: must be one of "openai", "ollama"; got "olama" (settings.llm.provider)` + "\n  hint: did you mean \"ollama\"?",
		},
		"missing": {
			"settings:\n  llm: {replay: {}}",
			`flow.yaml:2:17: error TEA1603: settings.llm.replay needs the key "file" (settings.llm.replay)` + "\n  hint: add it",
		},
		"in a list": {
			"settings:\n  llm: {stops: [1, x]}",
			`flow.yaml:2:20: error TEA1603: settings.llm.stops[1]: expected integer, got string "x" (settings.llm.stops[1])`,
		},
		"no object": {
			"settings:\n  llm: big",
			`flow.yaml:2:8: error TEA1603: settings.llm: expected object, got string "big" (settings.llm)`,
		},
		"null is not set":    {"settings: {llm: {temperature: , stops: [null], replay: }}", ""},
		"nothing at all":     {"settings: {llm: }", ""},
		"anything":           {"settings: {any: {x: [1]}}", ""},
		"declared by nobody": {"settings: {other: 1}", ""},
		"the host's own":     {"settings: {lua: {timeout_seconds: 1.5, memory_mb: 64}, trace: {exporter: otlp}}", ""},
		"secret in a limit": {
			"settings:\n  lua: {timeout_seconds: '{{ secrets.t }}'}\n  events: {max_mb: '{{ secrets.t }}'}\n  plugins: {call_timeout_seconds: '{{ secrets.t }}'}\n  trace: {file: '{{ secrets.t }}'}",
			`flow.yaml:2:26: error TEA1603: settings.lua.timeout_seconds: expected number, got string "{{ secrets.t }}" (settings.lua.timeout_seconds)` + "\n  hint: this setting is read before the secrets; use a number or ${VARIABLE}\n" +
				`flow.yaml:3:20: error TEA1603: settings.events.max_mb: expected number, got string "{{ secrets.t }}" (settings.events.max_mb)` + "\n  hint: this setting is read before the secrets; use a number or ${VARIABLE}\n" +
				`flow.yaml:4:35: error TEA1603: settings.plugins.call_timeout_seconds: expected number, got string "{{ secrets.t }}" (settings.plugins.call_timeout_seconds)` + "\n  hint: this setting is read before the secrets; use a number or ${VARIABLE}",
		},
		"the host's own wrong": {"settings:\n  lua: {timeout_seconds: -1}", `flow.yaml:2:26: error TEA1603: settings.lua.timeout_seconds: must be at least 0, got -1 (settings.lua.timeout_seconds)`},
		"a variable's value is not repeated": {
			"settings:\n  llm: {temperature: \"${WORD}\", max_tokens: \"${MINUS}\", provider: \"${WORD}\"}",
			`flow.yaml:2:22: error TEA1603: settings.llm.temperature: expected number, got string; the value of "${WORD}" does not match (settings.llm.temperature)` + "\n  hint: set the variable to a valid value\n" +
				`flow.yaml:2:45: error TEA1603: settings.llm.max_tokens: must be at least 1; the value of "${MINUS}" does not match (settings.llm.max_tokens)` + "\n  hint: set the variable to a valid value\n" +
				`flow.yaml:2:67: error TEA1603: settings.llm.provider: must be one of "openai", "ollama"; the value of "${WORD}" does not match (settings.llm.provider)` + "\n  hint: set the variable to a valid value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, got := check(t, test.text)
			if d := cmp.Diff(test.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// The text of a variable that is not set is empty and would not match a pattern.
func TestVariableThatIsNotSetIsOneError(t *testing.T) {
	t.Parallel()
	type server struct {
		URL string `json:"url" pattern:"^https?://."`
	}
	text := "settings:\n  server: {url: '${MISSING}'}\nnodes: [{name: a}]\n"
	w, diags := spec.Parse("flow.yaml", []byte(text), spec.Options{LookupEnv: func(string) (string, bool) { return "", false }})
	settings.Declare(tea.Manifest{Settings: map[string]*schema.Schema{"server": schema.Of[server]()}}).Check(w, &diags)
	want := "flow.yaml:2:17: error TEA1601: the environment variable MISSING is not set (settings.server.url)\n  hint: set it, or give a default: ${MISSING:-default}"
	if diff := cmp.Diff(want, diags.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestValuesOfVariablesHaveTheDeclaredType(t *testing.T) {
	t.Parallel()
	got, faults := check(t, `settings:
  llm: {temperature: "${HALF}", max_tokens: "${TEN}", stream: "${YES}", api_key: "${TEN}", headers: {X: "${TEN}"}, stops: ["${TEN}", 1], provider: "${EMPTY}"}
  any: "${TEN}"
  other: "${TEN}"
  lua: {timeout_seconds: "${NONE:-3}", memory_mb: "${EMPTY}"}`)
	if faults != "" {
		t.Error(faults)
	}
	want := object{
		"llm": object{
			"temperature": 0.5, "max_tokens": int64(10), "stream": true, "api_key": "10", "headers": object{"X": "10"}, "stops": []any{int64(10), int64(1)}, "provider": nil,
		},
		"any": "10", "other": "10", "lua": object{"timeout_seconds": int64(3), "memory_mb": nil},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A plugin that a workflow does not use must not stop it.
func TestSettingsFitOneReaderOfAKey(t *testing.T) {
	t.Parallel()
	type number struct {
		Size int `json:"size,omitempty" maximum:"5"`
	}
	type text struct {
		Size string `json:"size"`
		Name string `json:"name,omitempty"`
	}
	reads := func(s *schema.Schema) tea.Manifest {
		return tea.Manifest{Settings: map[string]*schema.Schema{"store": s}}
	}
	first, second := reads(schema.Of[number]()), reads(schema.Of[text]())
	for name, test := range map[string]struct {
		text  string
		third []tea.Manifest
		want  object
		fault string
	}{
		"the first":  {`{size: "${FIVE}"}`, nil, object{"size": int64(5)}, ""},
		"the second": {`{size: "${TEN}", name: n}`, nil, object{"size": "10", "name": "n"}, ""},
		"none":       {`{size: "${TEN}", name: 1}`, nil, nil, `settings.store: unknown key "name"`},
		"anything":   {`{size: "${TEN}", name: 1}`, []tea.Manifest{reads(nil)}, object{"size": "10", "name": int64(1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, faults := check(t, "settings: {store: "+test.text+"}", append([]tea.Manifest{first, second}, test.third...)...)
			if !strings.Contains(faults, test.fault) || (faults == "") != (test.fault == "") {
				t.Errorf("faults: %s", faults)
			}
			if d := cmp.Diff(test.want, got["store"]); test.want != nil && d != "" {
				t.Error(d)
			}
		})
	}
}

func TestSettingsOfSubgraphsAreChecked(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"flow.yaml": "nodes: [{name: a, subgraph: sub.yaml}, {name: b, subgraph: sub.yaml}]",
		"sub.yaml":  "settings: {lua: {timeout: 1}}\nnodes: [{name: a}]",
	}
	w, diags := spec.Load("flow.yaml", spec.Options{ReadFile: func(name string) ([]byte, error) { return []byte(files[name]), nil }})
	settings.Declare().Check(w, &diags)
	want := "sub.yaml:1:18: error TEA1604: settings.lua: unknown key \"timeout\" (settings.lua.timeout)\n  hint: there are: timeout_seconds, memory_mb"
	if d := cmp.Diff(want, diags.Error()); d != "" {
		t.Error(d)
	}
}

func TestShortSecretSettingsAreNamed(t *testing.T) {
	t.Parallel()
	type secretModel struct {
		Key   string `json:"api_key,omitempty" secret:"true"`
		Other string `json:"other_key,omitempty" secret:"true"`
		Name  string `json:"name,omitempty"`
	}
	d := settings.Declare(tea.Manifest{Name: "llm", Settings: map[string]*schema.Schema{"llm": schema.Of[secretModel]()}})
	values := object{"llm": object{"api_key": "k", "other_key": "long-enough", "name": "n"}}
	if diff := cmp.Diff([]string{"settings.llm.api_key"}, d.ShortSecrets(values)); diff != "" {
		t.Errorf("short (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(object{"settings.llm.other_key": "long-enough"}, d.Secrets(values)); diff != "" {
		t.Errorf("masked (-want +got):\n%s", diff)
	}
}
