// Package yamlfile reads YAML files whose mistakes have positions. Start with [Parse].
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// ErrEmpty is the error of [Parse] for a file without a document.
var ErrEmpty = errors.New("the file is empty")

// File is the name of a file, for positions and relative paths.
type File string

// Parse returns the root of the first document in a text.
func Parse(data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	switch err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, ErrEmpty
	case err != nil:
		return nil, err
	}
	return doc.Content[0], nil
}

// Failf returns an error with the position of a node.
func (f File) Failf(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s: %w", f.Pos(n), fmt.Errorf(format, args...))
}

// Pos returns the position of a node.
func (f File) Pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: string(f), Line: n.Line, Column: n.Column}
}

// Resolve makes a path relative to the directory of the file.
func (f File) Resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(string(f)), path)
}

// Members calls each for the members of a mapping. Unknown keys and keys that appear
// twice are errors.
func (f File) Members(n *yaml.Node, known []string, each func(key, v *yaml.Node) error) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return f.Failf(n, "expected a mapping with %s", strings.Join(known, ", "))
	}
	lines := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if !slices.Contains(known, key.Value) {
			return f.Failf(key, "unknown key %q%s", key.Value, diag.Ending(key.Value, known))
		}
		if line, twice := lines[key.Value]; twice {
			return f.Failf(key, "the key %q appears twice (first in line %d)", key.Value, line)
		}
		lines[key.Value] = key.Line
		if err := each(key, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// Fields decodes the members of a mapping into the pointers of fields, by key. A pointer to
// a map gets an object of the value model, one to a duration a text such as 30s, and one to
// a pointer to a node the node itself. A function is called with the node.
func (f File) Fields(n *yaml.Node, fields map[string]any) error {
	return f.Members(n, slices.Sorted(maps.Keys(fields)), func(key, v *yaml.Node) error {
		switch to := fields[key.Value].(type) {
		case func(*yaml.Node) error:
			return to(v)
		case **yaml.Node:
			*to = v
		case *map[string]any:
			return f.Object(v, to)
		case *time.Duration:
			var err error
			if *to, err = time.ParseDuration(v.Value); err != nil || *to <= 0 {
				return f.Failf(v, "%s: expected a duration such as 30s or 2m", key.Value)
			}
		default:
			return f.Into(v, to)
		}
		return nil
	})
}

// Into decodes a node into a Go value.
func (f File) Into(n *yaml.Node, target any) error {
	if err := n.Decode(target); err != nil {
		return f.Failf(n, "%w", err)
	}
	return nil
}

// Value converts a node to the value model.
func (f File) Value(n *yaml.Node) (any, error) {
	var raw any
	if err := f.Into(n, &raw); err != nil {
		return nil, err
	}
	v, err := value.From(raw)
	if err != nil {
		return nil, f.Failf(n, "%w", err)
	}
	return v, nil
}

// Object converts a mapping to the value model; null is nil.
func (f File) Object(n *yaml.Node, target *map[string]any) error {
	v, err := f.Value(n)
	if err != nil {
		return err
	}
	object, ok := v.(map[string]any)
	if !ok && v != nil {
		return f.Failf(n, "expected an object")
	}
	*target = object
	return nil
}
