package source

import "github.com/the-edge-agent/tea/sdk/x/diag"

// Kind is the kind of a node's value.
type Kind int

// The kinds of value.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Map
)

// String returns the kind with its article, as messages use it: "a list".
func (k Kind) String() string {
	return [...]string{"nothing", "a boolean", "an integer", "a number", "a string", "a list", "a mapping"}[k]
}

// Node is one value of a document. Nodes are immutable and can be shared: two
// aliases of one anchor are the same node.
type Node struct {
	Kind Kind
	// File, Line and Column are where the value begins, from 1.
	File         string
	Line, Column int
	// Text is a scalar as written, with quotes and escapes resolved.
	Text string
	// Scalar is the value of a scalar in the value model; nil for a string,
	// whose value is Text.
	Scalar any
	// TextLine and TextColumn are where a string's content begins, after a
	// quote or at the first line of a block. Block marks a block scalar.
	TextLine, TextColumn int
	Block                bool
	// Written is the rest of the file from the content on, for a string whose
	// spelling differs from its value: with escapes, or folded from several lines.
	// Quote is the quote before it, or 0.
	Written string
	Quote   byte
	// Cut reports whether a plain scalar, possibly empty, ends at a comment on its
	// line. The author may have meant the text after the # to be part of it.
	Cut bool
	// Items are the elements of a list.
	Items []*Node
	// Members are the entries of a mapping in the order written.
	Members []Member
}

// Member is one entry of a mapping. Key is always a scalar; its Text is the key's
// name, whatever its kind.
type Member struct {
	Key, Value *Node
}

// Pos returns the node's position with the given path.
//
//go:noinline
func (n *Node) Pos(path string) diag.Pos {
	return diag.Pos{File: n.File, Line: n.Line, Column: n.Column, Path: path}
}

// Get returns the value of a key, or nil if there is none.
//
//go:noinline
func (n *Node) Get(key string) *Node {
	for _, m := range n.Members {
		if m.Key.Text == key {
			return m.Value
		}
	}
	return nil
}

// Value converts the node to the value model. The result shares nothing with
// the node.
func (n *Node) Value() any {
	switch n.Kind {
	case List:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = item.Value()
		}
		return list
	case Map:
		object := make(map[string]any, len(n.Members))
		for _, m := range n.Members {
			object[m.Key.Text] = m.Value.Value()
		}
		return object
	case String:
		return n.Text
	}
	return n.Scalar
}
