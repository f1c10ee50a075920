package flowtest

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/cmd/internal/yamlfile"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Suite is one file of tests.
type Suite struct {
	File  string
	Tests []Test

	doc yamlfile.File
}

// Test is one run of a workflow with its expected outcome.
type Test struct {
	Name string
	// Pos is the position of the test in the file.
	Pos diag.Pos
	// Workflow is the path of the workflow's file.
	Workflow string
	Overlays []string
	Input    map[string]any
	Secrets  map[string]any
	// Actions are the results of replaced actions by name. Each call takes the
	// next result of the list; the last one repeats.
	Actions map[string][]any
	// Recording has the results of actions that read; nil = none.
	Recording *Recording
	Answers   map[string]any
	Expect    []Expectation
}

// Expectation is one entry of expect, with its position.
type Expectation struct {
	Pos   diag.Pos
	Key   string
	Value any
}

// mostBytes is the maximum size of a test file.
const mostBytes = 4 << 20

var (
	suiteKeys  = []string{"tests", "workflow"}
	testKeys   = []string{"name", "workflow", "overlays", "input", "secrets", "actions", "recording", "answers", "expect"}
	expectKeys = []string{"status", "state", "exact", "error", "error_type", "visited", "writes", "pending"}
)

// Load reads a file of tests. Its errors have a position.
func Load(file string) (*Suite, error) {
	data, err := confine.ReadRegular(file, mostBytes)
	if err != nil {
		return nil, fmt.Errorf("read tests: %w", err)
	}
	return Parse(file, data)
}

// Parse is [Load] from memory. file is used in messages, and paths are relative
// to its directory.
func Parse(file string, data []byte) (*Suite, error) {
	s := &Suite{File: file, doc: yamlfile.File(file)}
	root, err := yamlfile.Parse(data)
	switch {
	case errors.Is(err, yamlfile.ErrEmpty):
		return nil, fmt.Errorf("%s: no list of tests", file)
	case err != nil:
		return nil, fmt.Errorf("read tests %s: %w", file, err)
	}
	if err := s.decode(root); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Suite) decode(root *yaml.Node) error {
	workflow := ""
	var list *yaml.Node
	err := s.doc.Members(root, suiteKeys, func(key, v *yaml.Node) error {
		if key.Value == "workflow" {
			workflow = v.Value
			return nil
		}
		list = v
		return nil
	})
	if err != nil {
		return err
	}
	if list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return s.doc.Failf(root, "no list of tests")
	}
	for i, n := range list.Content {
		t := Test{Name: fmt.Sprintf("test %d", i+1), Pos: s.doc.Pos(n), Workflow: workflow}
		if err := s.test(&t, n); err != nil {
			return err
		}
		if t.Workflow == "" {
			return s.doc.Failf(n, "%s does not name a workflow", t.Name)
		}
		t.Workflow = s.doc.Resolve(t.Workflow)
		for i, f := range t.Overlays {
			t.Overlays[i] = s.doc.Resolve(f)
		}
		s.Tests = append(s.Tests, t)
	}
	return nil
}

func (s *Suite) test(t *Test, n *yaml.Node) error {
	return s.doc.Members(n, testKeys, func(key, v *yaml.Node) error {
		switch key.Value {
		case "name":
			t.Name = v.Value
		case "workflow":
			t.Workflow = v.Value
		case "overlays":
			return s.doc.Into(v, &t.Overlays)
		case "input":
			return s.doc.Object(v, &t.Input)
		case "secrets":
			return s.doc.Object(v, &t.Secrets)
		case "answers":
			return s.doc.Object(v, &t.Answers)
		case "actions":
			return s.actions(t, v)
		case "recording":
			return s.recording(t, v)
		case "expect":
			return s.doc.Members(v, expectKeys, func(key, v *yaml.Node) error {
				want, err := s.doc.Value(v)
				t.Expect = append(t.Expect, Expectation{s.doc.Pos(key), key.Value, want})
				return err
			})
		}
		return nil
	})
}

// actions reads the results of replaced actions.
func (s *Suite) actions(t *Test, n *yaml.Node) error {
	var all map[string]any
	if err := s.doc.Object(n, &all); err != nil {
		return err
	}
	t.Actions = map[string][]any{}
	for name, v := range all {
		list, several := v.([]any)
		if !several {
			list = []any{v}
		}
		if len(list) == 0 {
			return s.doc.Failf(n, "the list of results of %s is empty", name)
		}
		t.Actions[name] = list
	}
	return nil
}

func (s *Suite) recording(t *Test, n *yaml.Node) error {
	t.Recording = &Recording{}
	err := s.doc.Members(n, []string{"file", "actions"}, func(key, v *yaml.Node) error {
		if key.Value == "actions" {
			return s.doc.Into(v, &t.Recording.Actions)
		}
		t.Recording.File = v.Value
		return nil
	})
	if err == nil && (t.Recording.File == "" || len(t.Recording.Actions) == 0) {
		err = s.doc.Failf(n, "a recording has a file, and a list of actions or namespaces that only read: {file: pump.jsonl, actions: [modbus]}")
	}
	t.Recording.File = s.doc.Resolve(t.Recording.File)
	return err
}
