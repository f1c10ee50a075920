package flowtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Suite is one file of tests.
type Suite struct {
	File  string
	Tests []Test
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
	var doc yaml.Node
	switch err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: no list of tests", file)
	case err != nil:
		return nil, fmt.Errorf("read tests %s: %w", file, err)
	}
	s := &Suite{File: file}
	if err := s.decode(doc.Content[0]); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Suite) fail(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s: %w", s.pos(n), fmt.Errorf(format, args...))
}

func (s *Suite) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: s.File, Line: n.Line, Column: n.Column}
}

// members calls each for the members of a mapping. Unknown keys are errors.
func (s *Suite) members(n *yaml.Node, known []string, each func(key, v *yaml.Node) error) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return s.fail(n, "expected a mapping with %s", strings.Join(known, ", "))
	}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if !slices.Contains(known, key.Value) {
			return s.fail(key, "unknown key %q%s", key.Value, diag.Ending(key.Value, known))
		}
		if err := each(key, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Suite) decode(root *yaml.Node) error {
	workflow := ""
	var list *yaml.Node
	err := s.members(root, suiteKeys, func(key, v *yaml.Node) error {
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
		return s.fail(root, "no list of tests")
	}
	for i, n := range list.Content {
		t := Test{Name: fmt.Sprintf("test %d", i+1), Pos: s.pos(n), Workflow: workflow}
		if err := s.test(&t, n); err != nil {
			return err
		}
		if t.Workflow == "" {
			return s.fail(n, "%s does not name a workflow", t.Name)
		}
		t.Workflow = s.resolve(t.Workflow)
		for i, f := range t.Overlays {
			t.Overlays[i] = s.resolve(f)
		}
		s.Tests = append(s.Tests, t)
	}
	return nil
}

// resolve makes a path relative to the directory of the tests.
func (s *Suite) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(s.File), path)
}

func (s *Suite) test(t *Test, n *yaml.Node) error {
	return s.members(n, testKeys, func(key, v *yaml.Node) error {
		switch key.Value {
		case "name":
			t.Name = v.Value
		case "workflow":
			t.Workflow = v.Value
		case "overlays":
			return s.into(v, &t.Overlays)
		case "input":
			return s.object(v, &t.Input)
		case "secrets":
			return s.object(v, &t.Secrets)
		case "answers":
			return s.object(v, &t.Answers)
		case "actions":
			return s.actions(t, v)
		case "recording":
			return s.recording(t, v)
		case "expect":
			return s.members(v, expectKeys, func(key, v *yaml.Node) error {
				want, err := s.value(v)
				t.Expect = append(t.Expect, Expectation{s.pos(key), key.Value, want})
				return err
			})
		}
		return nil
	})
}

// actions reads the results of replaced actions.
func (s *Suite) actions(t *Test, n *yaml.Node) error {
	var all map[string]any
	if err := s.object(n, &all); err != nil {
		return err
	}
	t.Actions = map[string][]any{}
	for name, v := range all {
		list, several := v.([]any)
		if !several {
			list = []any{v}
		}
		if len(list) == 0 {
			return s.fail(n, "the list of results of %s is empty", name)
		}
		t.Actions[name] = list
	}
	return nil
}

func (s *Suite) recording(t *Test, n *yaml.Node) error {
	t.Recording = &Recording{}
	err := s.members(n, []string{"file", "actions"}, func(key, v *yaml.Node) error {
		if key.Value == "actions" {
			return s.into(v, &t.Recording.Actions)
		}
		t.Recording.File = v.Value
		return nil
	})
	if err == nil && (t.Recording.File == "" || len(t.Recording.Actions) == 0) {
		err = s.fail(n, "a recording has a file, and a list of actions or namespaces that only read: {file: pump.jsonl, actions: [modbus]}")
	}
	t.Recording.File = s.resolve(t.Recording.File)
	return err
}

func (s *Suite) into(n *yaml.Node, target any) error {
	if err := n.Decode(target); err != nil {
		return s.fail(n, "%w", err)
	}
	return nil
}

// value converts YAML to the value model.
func (s *Suite) value(n *yaml.Node) (any, error) {
	var raw any
	if err := s.into(n, &raw); err != nil {
		return nil, err
	}
	v, err := value.From(raw)
	if err != nil {
		return nil, s.fail(n, "%w", err)
	}
	return v, nil
}

func (s *Suite) object(n *yaml.Node, target *map[string]any) error {
	v, err := s.value(n)
	if err != nil {
		return err
	}
	object, ok := v.(map[string]any)
	if !ok && v != nil {
		return s.fail(n, "expected an object")
	}
	*target = object
	return nil
}
