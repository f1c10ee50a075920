package migrate

import (
	"strconv"

	"go.yaml.in/yaml/v3"
)

// index returns the position of a key in a mapping's content, or -1.
func index(m *yaml.Node, key string) int {
	if m != nil && m.Kind == yaml.MappingNode {
		for i := 0; i < len(m.Content); i += 2 {
			if m.Content[i].Value == key {
				return i
			}
		}
	}
	return -1
}

// get returns the value of a key, or nil.
func get(m *yaml.Node, key string) *yaml.Node {
	if i := index(m, key); i >= 0 {
		return m.Content[i+1]
	}
	return nil
}

// str returns the text of a scalar, or "".
func str(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// text returns the text under a key, or "".
func text(m *yaml.Node, key string) string { return str(get(m, key)) }

// set sets a key, at its place if it exists.
func set(m *yaml.Node, key string, v *yaml.Node) {
	if i := index(m, key); i >= 0 {
		m.Content[i+1] = v
		return
	}
	m.Content = append(m.Content, scalar(key), v)
}

// take removes a key and returns its value, or nil.
func take(m *yaml.Node, key string) *yaml.Node {
	i := index(m, key)
	if i < 0 {
		return nil
	}
	v := m.Content[i+1]
	m.Content = append(m.Content[:i:i], m.Content[i+2:]...)
	return v
}

// rename renames a key. It removes it if the new one exists.
func rename(m *yaml.Node, key, to string) {
	if index(m, to) >= 0 {
		take(m, key)
	} else if i := index(m, key); i >= 0 {
		m.Content[i].Value = to
	}
}

func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

func number(i int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(i)}
}

func boolean(b bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(b)}
}

// mapping returns a mapping of keys and values.
func mapping(pairs ...any) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i < len(pairs); i += 2 {
		m.Content = append(m.Content, scalar(pairs[i].(string)), value(pairs[i+1]))
	}
	return m
}

func sequence(items ...any) *yaml.Node {
	s := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, v := range items {
		s.Content = append(s.Content, value(v))
	}
	return s
}

func value(v any) *yaml.Node {
	switch v := v.(type) {
	case *yaml.Node:
		return v
	case string:
		return scalar(v)
	case int:
		return number(v)
	case bool:
		return boolean(v)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

// keys returns the keys of a mapping.
func keys(m *yaml.Node) (list []string) {
	if m != nil && m.Kind == yaml.MappingNode {
		for i := 0; i < len(m.Content); i += 2 {
			list = append(list, m.Content[i].Value)
		}
	}
	return list
}

// items returns the elements of a list.
func items(n *yaml.Node) []*yaml.Node {
	if n != nil && n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return nil
}
