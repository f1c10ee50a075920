package tea_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

func handle(context.Context, *tea.Request) (*tea.Response, error) { return nil, nil }

func TestBundleCheck(t *testing.T) {
	t.Parallel()
	good := func() tea.Bundle {
		return tea.Bundle{Name: "greet", Version: "1.0.0", Actions: []tea.Action{{Name: "greet.hello", Handle: handle}}}
	}
	for name, test := range map[string]struct {
		change func(*tea.Bundle)
		want   string
	}{
		"good":          {func(*tea.Bundle) {}, ""},
		"deeper name":   {func(b *tea.Bundle) { b.Actions[0].Name = "greet.a.b_2" }, ""},
		"no name":       {func(b *tea.Bundle) { b.Name = "" }, "bundle name"},
		"capitals":      {func(b *tea.Bundle) { b.Name = "Greet" }, "bundle name"},
		"path":          {func(b *tea.Bundle) { b.Name = "../x" }, "bundle name"},
		"long":          {func(b *tea.Bundle) { b.Name = strings.Repeat("a", 64) }, "bundle name"},
		"no version":    {func(b *tea.Bundle) { b.Version = "" }, "no version"},
		"no actions":    {func(b *tea.Bundle) { b.Actions = nil }, "no actions"},
		"no namespace":  {func(b *tea.Bundle) { b.Actions[0].Name = "hello" }, "namespace.verb"},
		"odd namespace": {func(b *tea.Bundle) { b.Actions[0].Name = "greet. x" }, "namespace.verb"},
		"no handler":    {func(b *tea.Bundle) { b.Actions[0].Handle = nil }, "no handler"},
		"needs": {func(b *tea.Bundle) {
			b.Settings = map[string]*schema.Schema{"greet": nil}
			b.Env, b.StartTimeout, b.Memory, b.Exclusive = []string{"GREET_HOME"}, time.Minute, 1<<30, []string{"greet.path"}
		}, ""},
		"odd variable":   {func(b *tea.Bundle) { b.Env = []string{"A=B"} }, `"A=B" is not a valid name of an environment variable`},
		"odd exclusive":  {func(b *tea.Bundle) { b.Exclusive = []string{"greet.path"} }, `"greet.path" is not in the settings`},
		"odd time":       {func(b *tea.Bundle) { b.StartTimeout = -time.Second }, "start_timeout_ms is -1000"},
		"odd memory":     {func(b *tea.Bundle) { b.Memory = -1 }, "memory_bytes is -1"},
		"twice the same": {func(b *tea.Bundle) { b.Actions = append(b.Actions, b.Actions[0]) }, "appears twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := good()
			test.change(&b)
			err := b.Check()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %v, want %q", err, test.want)
			}
		})
	}
}

func TestSettingsDecode(t *testing.T) {
	t.Parallel()
	type Inner struct {
		Rate *float64 `json:"rate,omitempty"`
	}
	type config struct {
		Inner
		Base string           `json:"base"`
		Max  int              `json:"max"`
		Sub  map[string]Inner `json:"sub"`
	}
	const given = `{"good": {"base":"x"}, "unknown": {"bsae":"x"}, "inside": {"sub": {"a": {"rat": 1}}},
		"wrong": {"max":"x"}, "embedded": {"rate":"x"}, "deep": {"sub": {"a": {"rate": true}}}, "whole": [1], "float": {"max": 1.5}}`
	var settings tea.Settings
	if err := json.Unmarshal([]byte(given), &settings); err != nil {
		t.Fatal(err)
	}
	got := config{Base: "default", Max: 7}
	if err := settings.Decode("absent", &got); err != nil || got.Base != "default" {
		t.Errorf("absent: %v, %v", got, err)
	}
	if err := settings.Decode("good", &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(config{Base: "x", Max: 7}, got); d != "" {
		t.Error(d)
	}
	for key, want := range map[string]string{
		"unknown":  `settings.unknown: unknown key "bsae"; did you mean "base"?`,
		"inside":   `settings.inside: unknown key "sub.a.rat"; did you mean "rate"?`,
		"wrong":    "settings.wrong.max: expected integer, got string",
		"embedded": "settings.embedded.rate: expected number, got string",
		"deep":     "settings.deep.sub.a.rate: expected number, got boolean",
		"whole":    "settings.whole: expected object, got array",
		"float":    "settings.float.max: expected integer, got number",
	} {
		err := settings.Decode(key, &config{})
		if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError || e.Message != want {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
}

func TestSettingsGetTheirDefaults(t *testing.T) {
	t.Parallel()
	type inner struct {
		Rate float64 `json:"rate,omitempty" default:"0.5"`
	}
	type config struct {
		Base string           `json:"base,omitempty" default:"x"`
		Max  int              `json:"max,omitempty" default:"5"`
		Big  uint64           `json:"big,omitempty"`
		Own  string           `json:"own,omitempty"`
		Sub  map[string]inner `json:"sub,omitempty"`
	}
	settings := tea.Settings{"empty": []byte(`{}`), "null": []byte(`null`), "some": []byte(`{"max": 0, "big": 18446744073709551615, "sub": {"a": {}}}`)}
	for key, want := range map[string]config{
		"absent": {Base: "x", Max: 5, Own: "own"},
		"empty":  {Base: "x", Max: 5, Own: "own"},
		"null":   {Base: "x", Max: 5, Own: "own"},
		"some":   {Base: "x", Max: 0, Big: 1<<64 - 1, Own: "own", Sub: map[string]inner{"a": {Rate: 0.5}}},
	} {
		got := config{Own: "own"}
		if err := settings.Decode(key, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", key, d)
		}
	}
}

func TestPayloadForms(t *testing.T) {
	t.Parallel()
	type point struct {
		X int `json:"x"`
	}
	for name, p := range map[string]tea.Payload{
		"raw": tea.RawPayload([]byte(`{"x":1}`)), "struct": tea.ValuePayload(point{1}),
		"model": tea.ValuePayload(map[string]any{"x": int64(1)}), "Go map": tea.ValuePayload(map[string]int{"x": 1}),
		"payload": tea.AsPayload(tea.ValuePayload(point{1})),
	} {
		raw, err := p.JSON()
		if err != nil || string(raw) != `{"x":1}` {
			t.Errorf("%s: %s, %v", name, raw, err)
		}
		v, err := p.Shared()
		if d := cmp.Diff(any(map[string]any{"x": int64(1)}), v); err != nil || d != "" {
			t.Errorf("%s: %v %s", name, err, d)
		}
		var back point
		if err := p.Decode(&back); err != nil || back.X != 1 {
			t.Errorf("%s: %v, %v", name, back, err)
		}
	}
	if raw, err := (tea.Payload{}).JSON(); err != nil || string(raw) != "null" {
		t.Errorf("the zero value is %s, %v", raw, err)
	}
}
