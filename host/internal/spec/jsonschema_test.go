package spec

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

type getParams struct {
	URL     string `json:"url" doc:"where"`
	Timeout int    `json:"timeout,omitempty"`
}

func fileSchema(t *testing.T) []byte {
	t.Helper()
	data, err := JSONSchema([]tea.ActionInfo{{Name: "http.get", Params: schema.Of[getParams]()}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestSchemaAndCheckAcceptTheSameKeys compares every section's keys in the
// schema with those that the check lets pass.
func TestSchemaAndCheckAcceptTheSameKeys(t *testing.T) {
	t.Parallel()
	var document struct {
		Definitions map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal(fileSchema(t), &document); err != nil {
		t.Fatal(err)
	}
	g := theGrammar()
	for _, s := range g.sections() {
		inSchema := []string{}
		for name := range document.Definitions[definitionName(s)].Properties {
			inSchema = append(inSchema, name)
		}
		slices.Sort(inSchema)
		accepted := []string{}
		for _, name := range append(allSpellings(g), inSchema...) {
			if !slices.Contains(accepted, name) && acceptsKey(g, s, name) {
				accepted = append(accepted, name)
			}
		}
		slices.Sort(accepted)
		if d := cmp.Diff(inSchema, accepted); d != "" {
			t.Errorf("%s: keys of the schema (-) and of the check (+) differ:\n%s", s.title, d)
		}
	}
}

func allSpellings(g *grammar) []string {
	var all []string
	for _, s := range g.sections() {
		for _, k := range s.keys {
			all = append(all, k.spellings()...)
		}
	}
	return all
}

func acceptsKey(g *grammar, s *section, name string) bool {
	var diags diag.List
	text := func(s string) *source.Node { return &source.Node{Kind: source.String, Text: s} }
	members := []source.Member{{Key: text(name), Value: &source.Node{}}}
	if name == "action" && s.inlineParams {
		members = append(members, source.Member{Key: text("with"), Value: &source.Node{}})
	}
	check := checker{diags: &diags, grammar: g}
	check.mapping(&source.Node{Kind: source.Map, Members: members}, "", s, "")
	return !slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Code == diagcode.UnknownKey })
}

func TestJSONSchema(t *testing.T) {
	t.Parallel()
	var s jsonschema.Schema
	if err := json.Unmarshal(fileSchema(t), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, doc string
		valid     bool
	}{
		{"smallest", `nodes: [{name: a}]`, true},
		{"id and x-", "x-a: 1\nnodes: [{id: a, x-b: 2}]", true},
		{"mapping of nodes", `nodes: {a: , b: {run: "return {}"}}`, true},
		{"no nodes", `name: a`, false},
		{"unnamed node", `nodes: [{run: x}]`, false},
		{"unknown key", `nodes: [{name: a, retires: 3}]`, false},
		{"uses with its parameters", `nodes: [{name: a, uses: http.get, with: {url: x}}]`, true},
		{"template for a number", `nodes: [{name: a, uses: http.get, with: {url: x, timeout: "{{ state.t }}"}}]`, true},
		{"wrong parameter", `nodes: [{name: a, uses: http.get, params: {url: x, timeout: soon}}]`, false},
		{"unknown parameter", `nodes: [{name: a, action: http.get, with: {url: x, uri: y}}]`, false},
		{"another action", `nodes: [{name: a, uses: my.own, with: {anything: 1}}]`, true},
		{"unknown action of a known namespace", `nodes: [{name: a, uses: http.got, with: {url: x}}]`, false},
		{"action and code", `nodes: [{name: a, uses: http.get, with: {url: x}, run: "return {}"}]`, false},
		{"two spellings of the code", `nodes: [{name: a, lua: "return {}", run: "return {}"}]`, false},
		{"inline parameters", `nodes: [{name: a, action: my.own, anything: 1}]`, true},
		{"a parameter params", `nodes: [{name: a, action: my.own, datalog: text, params: {y: 1}}]`, true},
		{"params is with", `nodes: [{name: a, action: my.own, params: {y: 1}, type: unknown}]`, false},
		{"inline next to with", `nodes: [{name: a, action: my.own, with: {}, anything: 1}]`, false},
		{"a template as inline metadata", `nodes: [{name: a, action: my.own, metadata: "{{ state.m }}", input: text, timeout_seconds: "{{ state.t }}"}]`, true},
		{"a text as a node's metadata", `nodes: [{name: a, uses: my.own, metadata: "{{ state.m }}"}]`, false},
		{"loop", `nodes: [{name: a, type: while_loop, condition: x, body: [{name: b}]}]`, true},
		{"loop without condition", `nodes: [{name: a, type: while_loop, body: [{name: b}]}]`, false},
		{"map", `nodes: [{name: a, type: dynamic_parallel, items: "{{ state.l }}", action: {uses: http.get, with: {url: x}}}]`, true},
		{"map key on a plain node", `nodes: [{name: a, item_var: x}]`, false},
		{"unknown type", `nodes: [{name: a, type: while}]`, false},
		{"goto rules", `nodes: [{name: a, goto: [{if: x, to: b}]}, {name: b}]`, true},
		{"schema short and long", "state_schema: {a: str, b: {type: list, reducer: append}}\nnodes: [{name: a}]", true},
		{"unknown state type", "state_schema: {a: text}\nnodes: [{name: a}]", false},
		{"duration", "config: {timeout_seconds: 1m30s}\nnodes: [{name: a}]", true},
		{"no duration", "config: {timeout_seconds: soon}\nnodes: [{name: a}]", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var diags diag.List
			doc := source.Parse("f.yaml", []byte(test.doc), &diags)
			if doc == nil {
				t.Fatal(diags)
			}
			err := resolved.Validate(doc.Value())
			if (err == nil) != test.valid {
				t.Errorf("schema: %v, want valid = %t", err, test.valid)
			}
		})
	}
}

// The five HTTP actions have the same parameters, which an editor's schema
// repeated for each of them.
func TestEqualParametersAreWrittenOnce(t *testing.T) {
	t.Parallel()
	params := schema.Of[getParams]()
	data, err := JSONSchema([]tea.ActionInfo{{Name: "http.get", Params: params}, {Name: "http.post", Params: params}})
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Definitions map[string]json.RawMessage `json:"definitions"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	if got, want := string(document.Definitions["params:http.post"]), `{"$ref":"#/definitions/params:http.get"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
