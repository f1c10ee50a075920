package source

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Limits on the expansion of a document. MaxBytes bounds a file without aliases.
const (
	MaxDepth      = 64
	MaxAliasNodes = 100_000
)

// builder turns the parser's nodes into a tree.
type builder struct {
	file  string
	lines *lines
	diags *diag.List
	path  []step
	// built are the anchors so far: an alias shares its anchor's node.
	built map[*yaml.Node]*shared
	// size counts the nodes built, aliasSize the nodes that aliases repeat.
	size, aliasSize int
	full            bool
}

// step is one part of a path: a key, or an index if key is nil.
type step struct {
	key   *Node
	index int
}

// shared is the node of an anchor; node is nil while it is being built.
type shared struct {
	node *Node
	size int
}

func (b *builder) here() string {
	path := ""
	for _, s := range b.path {
		if s.key != nil {
			path = diag.Key(path, s.key.Text)
		} else {
			path = diag.Index(path, s.index)
		}
	}
	return path
}

func (b *builder) pos(y *yaml.Node) diag.Pos {
	return diag.Pos{File: b.file, Line: y.Line, Column: y.Column, Path: b.here()}
}

// build returns the node for y, or nil if it is unusable.
func (b *builder) build(y *yaml.Node, depth int) *Node {
	if depth > MaxDepth {
		b.diags.Errorf(diagcode.NestingTooDeep, b.pos(y), "", "values are nested more than %d levels deep", MaxDepth)
		return nil
	}
	if y.Kind == yaml.AliasNode {
		return b.alias(y, depth)
	}
	before := b.size
	b.size++
	if y.Anchor != "" {
		b.built[y] = &shared{}
	}
	n := &Node{File: b.file, Line: y.Line, Column: y.Column}
	switch y.Kind {
	case yaml.ScalarNode:
		n = b.scalar(y, n)
	case yaml.SequenceNode:
		n.Kind = List
		n.Items = b.items(y, depth)
	case yaml.MappingNode:
		n.Kind = Map
		n.Members = b.members(y, depth)
	}
	if y.Kind != yaml.ScalarNode && y.Style&yaml.TaggedStyle != 0 && y.Tag != "!!map" && y.Tag != "!!seq" {
		b.diags.Errorf(diagcode.NoJSONForm, b.pos(y), "remove the tag", "the tag %s is not supported", y.Tag)
	}
	if y.Anchor != "" {
		*b.built[y] = shared{node: n, size: b.size - before}
	}
	return n
}

func (b *builder) alias(y *yaml.Node, depth int) *Node {
	anchor, ok := b.built[y.Alias]
	if ok && anchor.node == nil {
		b.diags.Errorf(diagcode.AliasProblem, b.pos(y), "", "the alias *%s is inside its own anchor", y.Value)
		return nil
	}
	if !ok {
		// The problem with the anchor was already reported.
		return nil
	}
	b.size += anchor.size
	b.aliasSize += anchor.size
	if b.aliasSize > MaxAliasNodes {
		if !b.full {
			b.diags.Errorf(diagcode.AliasProblem, b.pos(y), "write the values out, or move them to state or a file",
				"aliases expand to more than %d values", MaxAliasNodes)
		}
		b.full = true
		return nil
	}
	if depth+height(anchor.node) > MaxDepth {
		b.diags.Errorf(diagcode.NestingTooDeep, b.pos(y), "", "values are nested more than %d levels deep", MaxDepth)
		return nil
	}
	return anchor.node
}

func height(n *Node) int {
	h := 0
	for _, item := range n.Items {
		h = max(h, 1+height(item))
	}
	for _, m := range n.Members {
		h = max(h, 1+height(m.Value))
	}
	return h
}

func (b *builder) scalar(y *yaml.Node, n *Node) *Node {
	n.Text = y.Value
	var err error
	switch {
	case y.Style&yaml.TaggedStyle != 0:
		n.Kind, n.Scalar, err = resolveTagged(y.Tag, y.Value)
	case y.Style != 0:
		n.Kind = String
	default:
		n.Kind, n.Scalar, err = resolvePlain(y.Value)
	}
	if err != nil {
		b.diags.Errorf(diagcode.NoJSONForm, b.pos(y), "put it in quotes to use it as text", "%v", err)
		return nil
	}
	b.lines.locateText(y, n)
	return n
}

func (b *builder) items(y *yaml.Node, depth int) []*Node {
	items := make([]*Node, 0, len(y.Content))
	for i, c := range y.Content {
		b.path = append(b.path, step{index: i})
		if item := b.build(c, depth+1); item != nil {
			items = append(items, item)
		}
		b.path = b.path[:len(b.path)-1]
	}
	return items
}

func (b *builder) members(y *yaml.Node, depth int) []Member {
	members := make([]Member, 0, len(y.Content)/2)
	seen := make(map[string]*Node, len(y.Content)/2)
	var merge *merged
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		if k.Kind == yaml.ScalarNode && k.Tag == "!!merge" {
			if merge != nil {
				b.diags.Errorf(diagcode.DuplicateKey, b.pos(k), "use one << with a list: << : [*a, *b]", "duplicate key <<")
			}
			merge = &merged{at: len(members), from: b.mergeSources(v, depth)}
			continue
		}
		key := b.key(k, depth)
		if key == nil {
			continue
		}
		b.path = append(b.path, step{key: key})
		if first, ok := seen[key.Text]; ok {
			b.diags.Errorf(diagcode.DuplicateKey, b.pos(k), "remove one of the two", "duplicate key %q (first defined at line %d, column %d)", key.Text, first.Line, first.Column)
		} else {
			seen[key.Text] = key
			if value := b.build(v, depth+1); value != nil {
				members = append(members, Member{Key: key, Value: value})
			}
		}
		b.path = b.path[:len(b.path)-1]
	}
	if merge == nil {
		return members
	}
	return slices.Insert(members, merge.at, merge.missing(seen)...)
}

// key returns a mapping's key, or nil if it is not a scalar.
func (b *builder) key(k *yaml.Node, depth int) *Node {
	if k.Kind == yaml.AliasNode {
		k = k.Alias
	} else if k.Anchor != "" {
		// An alias can refer to the key as a value.
		b.build(k, depth+1)
	}
	if k.Kind == yaml.ScalarNode {
		b.size++
		return &Node{Kind: String, File: b.file, Line: k.Line, Column: k.Column, Text: k.Value}
	}
	hint := "a key is a word or a quoted string"
	if k.Kind == yaml.MappingNode && k.Style&yaml.FlowStyle != 0 {
		hint = "put a template in quotes: \"{{ ... }}\""
	}
	b.diags.Errorf(diagcode.KeyNotText, b.pos(k), hint, "a list or a mapping cannot be a key")
	return nil
}

// merged is a << key: the mappings to merge and its index among the members.
type merged struct {
	at   int
	from []*Node
}

// missing returns the members to add. Written keys take precedence over merged
// ones, earlier sources over later ones.
func (m *merged) missing(seen map[string]*Node) []Member {
	var members []Member
	for _, source := range m.from {
		for _, member := range source.Members {
			if _, ok := seen[member.Key.Text]; !ok {
				seen[member.Key.Text] = member.Key
				members = append(members, member)
			}
		}
	}
	return members
}

// mergeSources returns the mappings of a << key.
func (b *builder) mergeSources(v *yaml.Node, depth int) []*Node {
	n := b.build(v, depth+1)
	if n == nil {
		return nil
	}
	sources := []*Node{n}
	if n.Kind == List {
		sources = n.Items
	}
	for _, s := range sources {
		if s.Kind != Map {
			b.diags.Errorf(diagcode.BadMergeKey, b.pos(v), "write << : *anchor, or a list of such aliases", "a merge key needs a mapping, got %s", s.Kind)
			return nil
		}
	}
	return sources
}
