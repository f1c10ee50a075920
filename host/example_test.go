package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// A host loads a workflow file and runs it, any number of times.
func Example() {
	dir, err := os.MkdirTemp("", "tea")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "flow.yaml")
	if err := os.WriteFile(file, []byte(`
nodes:
  - {name: greet, run: "return {greeting = 'Hello, ' .. state.name}"}
`), 0o600); err != nil {
		panic(err)
	}

	h, err := host.New(host.Options{})
	if err != nil {
		panic(err)
	}
	defer h.Close()
	wf, err := h.Load(file, host.LoadOptions{})
	if err != nil {
		panic(err)
	}
	defer wf.Close()
	res, err := wf.Run(context.Background(), host.RunOptions{Input: map[string]any{"name": "Ada"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Status, res.State["greeting"])
	// Output: done Hello, Ada
}

// mustParse parses a workflow for an example; the caller closes the host.
func mustParse(o host.Options, text string) (*host.Host, *host.Workflow) {
	h, err := host.New(o)
	if err != nil {
		panic(err)
	}
	wf, err := h.Parse("flow.yaml", []byte(text), host.LoadOptions{})
	if err != nil {
		panic(err)
	}
	return h, wf
}

func ExampleFunc() {
	double := host.Func("math.double", "Doubles a number.", func(_ context.Context, params map[string]any) (any, error) {
		x, ok := params["x"].(int64)
		if !ok {
			return nil, tea.Errorf(tea.ValidationError, "x must be an integer")
		}
		return map[string]any{"x": 2 * x}, nil
	})
	h, wf := mustParse(host.Options{Actions: []tea.Action{double}}, `
nodes: [{name: twice, uses: math.double, with: {x: "{{ state.x }}"}}]
`)
	defer h.Close()
	defer wf.Close()

	res, err := wf.Run(context.Background(), host.RunOptions{Input: map[string]any{"x": 21}})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.State["x"])
	// Output: 42
}

// A run whose node fails has a result, not an error.
func ExampleWorkflow_Run_failure() {
	h, wf := mustParse(host.Options{}, `
nodes: [{name: parse, uses: json.parse, with: {text: "{{ state.text }}"}}]
`)
	defer h.Close()
	defer wf.Close()

	res, err := wf.Run(context.Background(), host.RunOptions{Input: map[string]any{"text": "{"}})
	if err != nil {
		panic(err) // the run did not begin, or its checkpoint cannot be written
	}
	var node *flow.NodeError
	if errors.As(res.Err, &node) {
		fmt.Println(res.Status, node.Node, node.Err.Type)
	}
	// Output: failed parse validation_error
}

func ExampleWorkflow_Stream() {
	h, wf := mustParse(host.Options{}, `
nodes:
  - {name: measure, run: "return {celsius = 21}"}
  - {name: report, run: "return {text = state.celsius .. ' degrees'}"}
`)
	defer h.Close()
	defer wf.Close()

	run := wf.Stream(context.Background(), host.RunOptions{})
	for e := range run.Events() {
		if e.Type == flow.EventNodeEnd {
			fmt.Println(e.Node, "ended")
		}
	}
	res, err := run.Result()
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Status, res.State["text"])
	// Output:
	// measure ended
	// report ended
	// done 21 degrees
}

func ExampleWorkflow_Resume() {
	dir, err := os.MkdirTemp("", "tea")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	h, wf := mustParse(host.Options{}, `
nodes:
  - {name: propose, run: "return {price = 40}"}
  - {name: approve, uses: human.ask, with: {question: "Pay {{ state.price }}?"}, output: {approved: "{{ result.answer }}"}}
`)
	defer h.Close()
	defer wf.Close()

	res, err := wf.Run(context.Background(), host.RunOptions{CheckpointDir: dir})
	if err != nil {
		panic(err)
	}
	question := res.Pending[0]
	fmt.Println(res.Status, question.ID, question.Question)

	// Later, in another process for instance: propose is not run again.
	res, err = wf.Resume(context.Background(), res.RunID, host.RunOptions{
		CheckpointDir: dir,
		Answers:       map[string]any{question.ID: true},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Status, res.State["approved"], res.State["price"])
	// Output:
	// waiting approve:ask Pay 40?
	// done true 40
}

// Diagnostics name the place, the problem and the remedy.
func ExampleHost_Validate() {
	dir, err := os.MkdirTemp("", "tea")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "flow.yaml")
	if err := os.WriteFile(file, []byte("nodes:\n  - {name: a, uses: json.prase, with: {text: x}}\n"), 0o600); err != nil {
		panic(err)
	}
	h, err := host.New(host.Options{})
	if err != nil {
		panic(err)
	}
	defer h.Close()
	for _, d := range h.Validate(file, host.LoadOptions{}) {
		fmt.Printf("%s:%d:%d %s %s: %s\n", filepath.Base(d.Pos.File), d.Pos.Line, d.Pos.Column, d.Severity, d.Code, d.Message)
		fmt.Println("hint:", d.Hint)
	}
	// Output:
	// flow.yaml:2:21 error TEA1401: unknown action "json.prase"
	// hint: did you mean "json.parse"?
}
