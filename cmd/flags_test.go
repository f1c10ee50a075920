package teacmd

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

func TestParseAnswer(t *testing.T) {
	t.Parallel()
	ask := flow.Interrupt{Kind: flow.InterruptAsk}
	with := func(change func(*flow.Interrupt)) flow.Interrupt {
		i := ask
		change(&i)
		return i
	}
	choices := with(func(i *flow.Interrupt) { i.Choices = []any{"red", int64(7)} })
	boolean := with(func(i *flow.Interrupt) { i.Schema = map[string]any{"type": "boolean"} })
	text := with(func(i *flow.Interrupt) { i.Schema = map[string]any{"type": "string"} })
	tests := []struct {
		name  string
		i     flow.Interrupt
		typed string
		want  any
		fails bool
	}{
		{"plain text", ask, "as you like", "as you like", false},
		{"JSON", ask, `{"a": [1]}`, map[string]any{"a": []any{int64(1)}}, false},
		{"a choice", choices, "red", "red", false},
		{"a choice by its number", choices, "1", "red", false},
		{"a choice that is a number", choices, "7", int64(7), false},
		{"no choice", choices, "3", nil, true},
		{"yes", boolean, "yes", true, false},
		{"N", boolean, "N", false, false},
		{"true", boolean, "true", true, false},
		{"neither", boolean, "maybe", nil, true},
		{"a number as text", text, "42", "42", false},
		{"text in quotes", text, `"x y"`, "x y", false},
		{"nothing", ask, "", nil, true},
		{"the default", with(func(i *flow.Interrupt) { i.Default = "d" }), "", "d", false},
		{"nothing at an interrupt", flow.Interrupt{Kind: flow.InterruptBefore}, "", nil, false},
		{"text at an interrupt", flow.Interrupt{Kind: flow.InterruptBefore}, "x", nil, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := runview.ParseAnswer(test.i, test.typed)
			if (err != nil) != test.fails {
				t.Fatalf("err = %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResumeCommandIsQuoted(t *testing.T) {
	t.Parallel()
	f := &runFlags{CheckpointDir: "my runs", Secrets: `{"key": "x"}`, SecretsEnv: "MY_"}
	f.Plugins = []string{"it's"}
	res := &flow.Result{RunID: "r1", Pending: []flow.Interrupt{{ID: "a>b/ask:ask", Kind: flow.InterruptAsk}, {ID: "x:before"}}}
	want := os.Args[0] + ` resume r1 -c 'my runs' --plugins 'it'\''s' --secrets-env MY_ --answer 'a>b/ask:ask="text"' --pass all`
	if got := f.resumeCommand(res, host.Mask{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	state := map[string]any{"ok": false, "n": int64(3), "s": "3", "a.b": "dotted", "o": map[string]any{"k": nil}}
	tests := []struct {
		key, want string
		holds     bool
	}{
		{"ok", "false", true},
		{"ok", "true", false},
		{"n", "3", true},
		{"n", "3.0", true},
		{"s", "3", true},
		{"a.b", "dotted", true},
		{"o.k", "null", true},
		{"o.x", "null", false},
		{"gone", "null", false},
		{"n.x", "1", false},
	}
	for _, test := range tests {
		if got := holds(state, test.key, test.want); got != test.holds {
			t.Errorf("holds(%s=%s) = %v", test.key, test.want, got)
		}
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	ages := map[string]time.Duration{"30d": 720 * time.Hour, "90m": 90 * time.Minute, "0.5d": 12 * time.Hour}
	for text, want := range ages {
		var got age
		if err := got.UnmarshalText([]byte(text)); err != nil || time.Duration(got) != want {
			t.Errorf("age %s = %v, %v", text, time.Duration(got), err)
		}
	}
	sizes := map[string]size{"12": 12, "64KB": 64 << 10, "2g": 2 << 30, "256MB": 256 << 20}
	for text, want := range sizes {
		var got size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("size %s = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "soon", "-5m"} {
		if new(age).UnmarshalText([]byte(text)) == nil {
			t.Errorf("age %q is taken", text)
		}
	}
	for _, text := range []string{"", "KB", "-1", "1.5MB", "99999999999GB"} {
		if new(size).UnmarshalText([]byte(text)) == nil {
			t.Errorf("size %q is taken", text)
		}
	}
}

func TestExampleAnswerFits(t *testing.T) {
	t.Parallel()
	typed := func(name string) map[string]any { return map[string]any{"type": name} }
	tests := []struct {
		i    flow.Interrupt
		want string
	}{
		{flow.Interrupt{}, `"text"`},
		{flow.Interrupt{Choices: []any{"high", "low"}}, `"high"`},
		{flow.Interrupt{Default: false}, "false"},
		{flow.Interrupt{Schema: typed("boolean")}, "true"},
		{flow.Interrupt{Schema: typed("integer"), Default: "wrong"}, "1"},
		{flow.Interrupt{Schema: typed("object")}, "{}"},
		{flow.Interrupt{Schema: map[string]any{"enum": []any{"a"}}}, `"a"`},
		{flow.Interrupt{Schema: map[string]any{"type": "object", "required": []any{"n", "ok", "free"}, "properties": map[string]any{
			"n": map[string]any{"type": "integer", "minimum": int64(2)}, "ok": typed("boolean"), "more": typed("string"),
		}}}, `{"free":"text","n":2,"ok":true}`},
	}
	for _, test := range tests {
		if got := encoded(exampleAnswer(test.i)); got != test.want {
			t.Errorf("%v: %s, want %s", test.i, got, test.want)
		}
	}
}

func TestExamplesOfTheHelpAreValid(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	for name, lines := range examples {
		if !slices.Contains(names, name) {
			t.Errorf("there is no command %s", name)
		}
		for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
			command, _, _ := strings.Cut(strings.TrimSpace(line), " > ")
			out, err := exec.CommandContext(t.Context(), "sh", "-fc", `printf '%s\n' `+command).Output()
			if err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			words := strings.Split(strings.TrimSpace(string(out)), "\n")
			parser, err := new(app).newParser(words[1:])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(words[1:]); err != nil || words[0] != "tea" || words[1] != name {
				t.Errorf("%s: %v", command, err)
			}
		}
	}
}
