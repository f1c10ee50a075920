package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const typeYAML = "application/yaml"

// maxNodes limits the nodes of a YAML text, including the nodes that aliases
// stand for.
const maxNodes = 1 << 20

// isYAML reports whether a file is YAML, by its type or its name.
func (f File) isYAML() bool {
	ext := strings.ToLower(path.Ext(f.Path))
	return f.Type == typeYAML || strings.HasSuffix(f.Type, "+yaml") || ext == ".yaml" || ext == ".yml"
}

// Document is a document of a YAML text and the line on which it begins.
type Document struct {
	Line  int
	Value any
}

// DecodeYAML returns the documents of a YAML text in the value model. Names of
// members become text, and so do dates, binary data and numbers that are not
// finite.
func DecodeYAML(r io.Reader) (all []Document, err error) {
	d := yaml.NewDecoder(r)
	for left := maxNodes; ; {
		var n yaml.Node
		if err := d.Decode(&n); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		y := yamlNodes{left: left}
		v, err := y.value(&n)
		if err != nil {
			return nil, err
		}
		left = y.left
		document := Document{Line: n.Line, Value: v}
		if len(n.Content) > 0 {
			document.Line = n.Content[0].Line
		}
		all = append(all, document)
	}
}

type yamlNodes struct{ left int }

func (y *yamlNodes) value(n *yaml.Node) (v any, err error) {
	if y.left--; y.left < 0 {
		return nil, fmt.Errorf("the YAML has more than %d nodes", maxNodes)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return y.value(n.Content[0])
	case yaml.AliasNode:
		return y.value(n.Alias)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			if list[i], err = y.value(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		members := map[string]any{}
		return members, y.members(members, n)
	default:
		return yamlScalar(n), nil
	}
}

// members adds the members of a mapping, which override those of merged mappings.
func (y *yamlNodes) members(into map[string]any, n *yaml.Node) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() != "!!merge" {
			continue
		}
		merged := []*yaml.Node{n.Content[i+1]}
		if merged[0].Kind == yaml.SequenceNode {
			merged = merged[0].Content
		}
		for at := len(merged) - 1; at >= 0; at-- { // the first one takes precedence
			v, err := y.value(merged[at])
			if err != nil {
				return err
			}
			if members, ok := v.(map[string]any); ok {
				maps.Copy(into, members)
			}
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		if name.ShortTag() == "!!merge" {
			continue
		}
		for name.Kind == yaml.AliasNode {
			name = name.Alias
		}
		if name.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: the name of a member is not a scalar", name.Line)
		}
		v, err := y.value(n.Content[i+1])
		if err != nil {
			return err
		}
		into[name.Value] = v
	}
	return nil
}

func yamlScalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return i
		}
		var u uint64
		if n.Decode(&u) == nil {
			return json.Number(strconv.FormatUint(u, 10))
		}
	case "!!float":
		var f float64
		if n.Decode(&f) == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f
		}
	}
	return n.Value
}
