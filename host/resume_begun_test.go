package host_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

// A resume continues what had begun with the values that it began with, whatever
// the environment, the settings or the input of the resume say now.
func TestResumeContinuesWithWhatANodeBeganWith(t *testing.T) {
	t.Parallel()
	const inner = `
nodes:
  - {name: one, run: "return {one = state.x}"}
  - {name: two, interrupt: before, run: "return {two = state.x}"}
`
	const join = `
    fan_in: j
  - {name: j, run: "local out = {} for i, p in ipairs(parallel_results) do out[i] = p.state.item .. ' ' .. tostring(p.state.did) end return {out = out}"}
`
	devices := func(names ...any) map[string]any { return map[string]any{"devices": names} }
	tests := []struct {
		name, text    string
		first, second host.RunOptions
		pending       []string
		want          map[string]any
	}{
		{
			"items of a map", `
nodes:
  - name: m
    type: dynamic_parallel
    items: "{{ env.devices }}"
    steps:
      - {uses: human.ask, with: {question: "Erase {{ item }}?"}, output: {ok: "{{ result.answer }}"}}
      - {run: "return {did = 'erased ' .. item}"}` + join,
			host.RunOptions{Env: devices("old1", "old2")},
			host.RunOptions{Env: devices("prod1", "prod2", "prod3"), Answers: map[string]any{"m[0]/0:ask": true, "m[1]/0:ask": true}},
			[]string{"m[0]/0:ask", "m[1]/0:ask"},
			map[string]any{"out": []any{"old1 erased old1", "old2 erased old2"}},
		},
		{
			"random items of a map", `
nodes:
  - name: m
    type: dynamic_parallel
    items: ["{{ range(100000) | random }}", "{{ range(100000) | random }}"]
    max_concurrency: 1
    steps:
      - {run: "return {saw = item}"}
      - {name: q, uses: human.ask, with: {question: "?"}, output: {ok: "{{ result.answer }}"}}
      - {run: "return {did = item == state.saw}"}
    fan_in: j
  - {name: j, run: "local out = {} for i, p in ipairs(parallel_results) do out[i] = p.state.did end return {out = out}"}`,
			host.RunOptions{},
			host.RunOptions{Answers: map[string]any{"m[0]/q:ask": true, "m[1]/q:ask": true}},
			[]string{"m[0]/q:ask", "m[1]/q:ask"},
			map[string]any{"out": []any{true, true}},
		},
		{
			"items of a map that is an item of a map", `
nodes:
  - name: m
    type: dynamic_parallel
    items: [1]
    steps:
      - {name: s, type: dynamic_parallel, items: "{{ env.devices }}", item_var: part, action: {uses: human.ask, with: {question: "{{ part }}?"}, output: {did: ["{{ part }}"]}}}
    fan_in: j
  - {name: j, run: "return {out = parallel_results[1].state.did}"}
state_schema: {did: {type: list, reducer: extend}}`,
			host.RunOptions{Env: devices("a", "b")},
			host.RunOptions{Env: devices("c"), Answers: map[string]any{"m[0]/s[0]:ask": true, "m[0]/s[1]:ask": true}},
			[]string{"m[0]/s[0]:ask", "m[0]/s[1]:ask"},
			map[string]any{"out": []any{"a", "b"}},
		},
		{
			"items that follow from the state", `
nodes:
  - {name: m, type: dynamic_parallel, items: "{{ state.devices }}", action: {uses: human.ask, with: {question: "?"}, output: {did: "{{ item }}"}}, fan_in: j}
  - {name: j, run: "local out = {} for i, p in ipairs(parallel_results) do out[i] = p.state.did end return {out = out}"}`,
			host.RunOptions{Input: devices("old1", "old2")},
			host.RunOptions{Input: devices("prod"), Answers: map[string]any{"m[0]:ask": true, "m[1]:ask": true}},
			[]string{"m[0]:ask", "m[1]:ask"},
			map[string]any{"devices": []any{"prod"}, "out": []any{"old1", "old2"}},
		},
		{
			"input of a subgraph", `
nodes:
  - {name: s, subgraph: sub.yaml, input: {x: "{{ env.x }}"}}`,
			host.RunOptions{Env: map[string]any{"x": "old"}},
			host.RunOptions{Env: map[string]any{"x": "new"}},
			[]string{"s/two:before"},
			map[string]any{"x": "old", "one": "old", "two": "old"},
		},
		{
			"input of a subgraph that follows from the state", `
nodes:
  - {name: s, subgraph: sub.yaml, input: {x: "{{ state.y }}"}}`,
			host.RunOptions{Input: map[string]any{"y": "old"}},
			host.RunOptions{Input: map[string]any{"y": "new"}},
			[]string{"s/two:before"},
			map[string]any{"x": "old", "y": "new", "one": "old", "two": "old"},
		},
		{
			"input of workflow.run", `
nodes:
  - {name: s, uses: workflow.run, with: {path: sub.yaml, input: {x: "{{ env.x }}"}}, output: {out: "{{ result.state }}"}}`,
			host.RunOptions{Env: map[string]any{"x": "old"}},
			host.RunOptions{Env: map[string]any{"x": "new"}},
			[]string{"s/two:before"},
			map[string]any{"out": map[string]any{"x": "old", "one": "old", "two": "old"}},
		},
		{
			"input of workflow.run that follows from the state", `
nodes:
  - {name: s, uses: workflow.run, with: {path: sub.yaml, input: {x: "{{ state.y }}"}}, output: {out: "{{ result.state.x }} {{ result.state.two }}"}}`,
			host.RunOptions{Input: map[string]any{"y": "old"}},
			host.RunOptions{Input: map[string]any{"y": "new"}},
			[]string{"s/two:before"},
			map[string]any{"y": "new", "out": "old old"},
		},
		{
			"file of workflow.run", `
nodes:
  - {name: s, uses: workflow.run, with: {path: "{{ env.x }}.yaml", input: {x: 1}}, output: {out: "{{ result.state.two }}"}}`,
			host.RunOptions{Env: map[string]any{"x": "sub"}},
			host.RunOptions{Env: map[string]any{"x": "other"}},
			[]string{"s/two:before"},
			map[string]any{"out": int64(1)},
		},
		{
			"condition of a node that has begun", `
nodes:
  - name: s
    if: "{{ env.x }}"
    subgraph: sub.yaml
    input: {x: 1}`,
			host.RunOptions{Env: map[string]any{"x": "yes"}},
			host.RunOptions{},
			[]string{"s/two:before"},
			map[string]any{"x": int64(1), "one": int64(1), "two": int64(1)},
		},
		{
			"condition of an action that asks", `
nodes:
  - {name: q, if: state.ask, uses: human.ask, with: {question: "Erase?"}, output: {ok: "{{ result.answer }}"}}`,
			host.RunOptions{Input: map[string]any{"ask": true}},
			host.RunOptions{Input: map[string]any{"ask": false}, Answers: map[string]any{"q:ask": true}},
			[]string{"q:ask"},
			map[string]any{"ask": false, "ok": true},
		},
		{
			"output of a map, a loop and a subgraph that have ended", `
nodes:
  - {name: m, type: dynamic_parallel, items: [1, 2], action: {uses: json.parse, with: {text: "1"}, output: {v: 1}}, output: {a: "{{ env.x }}"}}
  - {name: l, type: while_loop, condition: not state.n, max_iterations: 3, body: [{name: n, run: "return {n = 1}"}], output: {b: "{{ env.x }} {{ result.iterations }}"}}
  - {name: s, subgraph: plain.yaml, output: {c: "{{ env.x }}"}}
  - {name: last, interrupt: before, run: "return {last = state.a .. state.b .. state.c}"}`,
			host.RunOptions{Env: map[string]any{"x": "old"}},
			host.RunOptions{Env: map[string]any{"x": "new"}},
			[]string{"last:before"},
			map[string]any{"a": "old", "b": "old 1", "c": "old", "v": int64(1), "n": int64(1), "last": "oldold 1old"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := files(t, map[string]string{
				"main.yaml": test.text, "sub.yaml": inner, "plain.yaml": "nodes: [{name: p}]",
				"other.yaml": `nodes: [{name: two, run: "return {two = 'other'}"}]`,
			})
			res := s.run(test.first)
			wantStatus(t, res, flow.Waiting, test.pending...)
			res = s.resume(res.RunID, test.second)
			wantStatus(t, res, flow.Done)
			wantState(t, res, test.want)
		})
	}
}

func TestRetryFailedKeepsTheItems(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - name: each
    type: dynamic_parallel
    items: "{{ env.names }}"
    steps: [{uses: count.hit, with: {name: "{{ item }}"}, output: last}]
    fan_in: j`+collect)
	s.c.fail["b"] = true
	res := s.run(host.RunOptions{Env: map[string]any{"names": []any{"a", "b", "c"}}})
	wantOut(t, res, "each[0] true a", "each[1] false -", "each[2] true c")
	res = s.resume(res.RunID, host.RunOptions{RetryFailed: true, Env: map[string]any{"names": []any{"x", "y", "z"}}})
	wantOut(t, res, "each[0] true a", "each[1] true b", "each[2] true c")
}

// A new attempt evaluates the input again, and a resume continues with the input of
// the last attempt.
func TestResumeKeepsTheInputOfTheLastAttempt(t *testing.T) {
	t.Parallel()
	s := files(t, map[string]string{
		"main.yaml": `
nodes:
  - name: s
    subgraph: sub.yaml
    input: {x: "{{ env.x }}", y: "{{ range(100000) | random }}"}
    retry: {max_retries: 1, backoff_base_ms: 1, retry_on: [internal_error]}
`,
		"sub.yaml": `
nodes:
  - {name: hit, uses: count.hit, with: {name: "{{ state.x }}"}, output: {saw: "{{ state.y }}"}}
  - {name: look, interrupt: before, run: "return {same = state.saw == state.y}"}
`,
	})
	s.c.fail["old"] = true
	res := s.run(host.RunOptions{Env: map[string]any{"x": "old"}})
	wantStatus(t, res, flow.Waiting, "s~2/look:before")
	res = s.resume(res.RunID, host.RunOptions{Env: map[string]any{"x": "new"}})
	wantStatus(t, res, flow.Done)
	if res.State["same"] != true || res.State["x"] != "old" {
		t.Errorf("the input changed: %v", res.State)
	}
}

// What the state reproduces is not recorded: the journal does not repeat it.
func TestJournalHasNoItemsThatFollowFromTheState(t *testing.T) {
	t.Parallel()
	for items, want := range map[string]int{
		"{{ state.devices }}": 1, "{{ variables.all }}": 0, "{{ [\"DEVICE\"] }}": 0,
		"{{ state.devices + ([env.x] if env.x else []) }}": 2, "{{ settings.all }}": 2,
	} {
		t.Run(items, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, `
variables: {all: [DEVICE]}
settings: {all: [DEVICE]}
nodes:
  - {name: m, type: dynamic_parallel, items: '`+items+`', action: {uses: count.hit, with: {name: x}, output: v}}
`)
			input := map[string]any{}
			if want > 0 {
				input["devices"] = []any{"DEVICE"}
			}
			res := s.run(host.RunOptions{Input: input})
			wantStatus(t, res, flow.Done)
			data := readFile(t, filepath.Join(s.dir, res.RunID+".tea"))
			if got := bytes.Count(data, []byte("DEVICE")); got != want {
				t.Errorf("the journal has the item %d times, want %d", got, want)
			}
		})
	}
}

func TestRecordedItemsHoldReferencesToSecrets(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: m, type: dynamic_parallel, items: ["{{ secrets.key }}"], steps: [{name: q, uses: human.ask, with: {question: "?"}, output: ok}, {uses: count.hit, with: {name: "{{ item }}"}}]}
`)
	res := s.run(host.RunOptions{Secrets: map[string]any{"key": "tops3cret"}})
	wantStatus(t, res, flow.Waiting, "m[0]/q:ask")
	if data := readFile(t, res.Checkpoint); bytes.Contains(data, []byte("tops3cret")) {
		t.Error("the journal has the secret")
	}
	res = s.resume(res.RunID, host.RunOptions{Secrets: map[string]any{"key": "n3w-s3cret"}, Answers: map[string]any{"m[0]/q:ask": true}})
	wantStatus(t, res, flow.Done)
	if diff := cmp.Diff(map[string]int{"n3w-s3cret": 1}, s.c.calls); diff != "" {
		t.Errorf("a reference is resolved again on resume: %s", diff)
	}
}

// Input that does not fit the schema changes nothing: the run waits as before.
func TestResumeRefusesInputThatDoesNotFit(t *testing.T) {
	t.Parallel()
	const typed = `
state_schema: {n: {type: int}}
nodes:
  - {name: a}
  - {name: b, interrupt: before, run: "return {m = state.n}"}
`
	tests := []struct {
		name, text, pending string
		wrong               host.RunOptions
	}{
		{"at the top", typed, "b:before", host.RunOptions{Input: map[string]any{"n": "x"}}},
		{"in a subgraph", "nodes: [{name: s, subgraph: sub.yaml, on_error: continue}]", "s/b:before", host.RunOptions{Input: map[string]any{"n": "x"}}},
		{"in a step of an item of a map", "nodes: [{name: m, type: dynamic_parallel, items: [1], steps: [{name: s, subgraph: sub.yaml}]}]", "m[0]/s/b:before", host.RunOptions{Input: map[string]any{"n": "x"}}},
		{"in a loop in a branch", `
nodes:
  - {name: a}
  - {name: l, type: while_loop, condition: not state.m, max_iterations: 2, body: [{name: s, subgraph: sub.yaml}]}
  - {name: o}
edges: [{from: a, to: [l, o]}]
`, "a>l/l[0]/s/b:before", host.RunOptions{Input: map[string]any{"n": "x"}}},
		{"in an answer", typed, "b:before", host.RunOptions{Answers: map[string]any{"b:before": map[string]any{"n": "x"}}}},
		{"in an answer in a subgraph", "nodes: [{name: s, subgraph: sub.yaml}]", "s/b:before", host.RunOptions{Answers: map[string]any{"s/b:before": map[string]any{"n": "x"}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := files(t, map[string]string{"main.yaml": test.text, "sub.yaml": typed})
			res := s.run(host.RunOptions{})
			wantStatus(t, res, flow.Waiting, test.pending)
			before := readFile(t, res.Checkpoint)
			wrong := test.wrong
			wrong.CheckpointDir = s.dir
			got, err := s.wf.Resume(t.Context(), res.RunID, wrong)
			if err == nil || !strings.Contains(err.Error(), `"n"`) {
				t.Fatalf("the resume ended with %+v, %v", got, err)
			}
			if !bytes.Equal(before, readFile(t, res.Checkpoint)) {
				t.Error("the journal has changed")
			}
			res = s.resume(res.RunID, host.RunOptions{Input: map[string]any{"n": 1}})
			wantStatus(t, res, flow.Done)
			if res.State["m"] != int64(1) {
				t.Errorf("the state is %v", res.State)
			}
		})
	}
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Input that a branch merges does not take back what other branches added.
func TestInputOfAResumeKeepsWhatOtherBranchesAdded(t *testing.T) {
	t.Parallel()
	const schema = `
state_schema: {acc: {type: list, reducer: append, default: [0]}}
`
	tests := []struct{ name, text, pending string }{
		{"fan-out", `
nodes:
  - {name: s}
  - {name: a, run: "return {acc = 'a'}", goto: __end__}
  - {name: c, run: "return {acc = 'early'}"}
  - {name: last, interrupt: before, run: "return {acc = 'c'}", goto: __end__}
  - {name: b, run: "return {acc = 'b'}", goto: __end__}
edges: [{from: s, to: [a, c, b]}]
`, "s>c/last:before"},
		{"map", `
nodes:
  - name: m
    type: dynamic_parallel
    items: [a, c, b]
    steps:
      - {name: q, if: item == "c", uses: human.ask, with: {question: "?"}, output: {ok: true}}
      - {run: "return {acc = item}"}
`, "m[1]/q:ask"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, schema+test.text)
			res := s.run(host.RunOptions{})
			wantStatus(t, res, flow.Waiting, test.pending)
			o := host.RunOptions{Input: map[string]any{"acc": []any{"in"}}}
			if test.name == "map" {
				o.Answers = map[string]any{test.pending: true}
			}
			res = s.resume(res.RunID, o)
			wantStatus(t, res, flow.Done)
			if diff := cmp.Diff([]any{"in", "a", "c", "b"}, res.State["acc"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResumeDoesNotRepeatTheEventsOfFinishedItems(t *testing.T) {
	t.Parallel()
	wf := parse(t, `
nodes:
  - name: each
    type: dynamic_parallel
    items: [1, 2]
    action: {uses: json.parse, with: {text: "1"}}
  - {name: ask, uses: human.ask, with: {question: "go?"}}
`)
	o := host.RunOptions{CheckpointDir: t.TempDir()}
	res, err := wf.Run(t.Context(), o)
	if err != nil || res.Status != flow.Waiting {
		t.Fatal(res, err)
	}
	var seen []string
	o.Answers = map[string]any{res.Pending[0].ID: "yes"}
	o.Events = func(e flow.Event) {
		if e.Type == flow.EventBranchStart || e.Type == flow.EventBranchEnd {
			seen = append(seen, string(e.Type)+" "+e.Path)
		}
	}
	if _, err := wf.Resume(t.Context(), res.RunID, o); err != nil {
		t.Fatal(err)
	}
	if len(seen) > 0 {
		t.Errorf("the resume repeats %q", seen)
	}
}
