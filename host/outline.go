package host

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Outline is what a workflow file names, and where, for editors. The caller must not
// change it.
type Outline struct {
	// Nodes are the nodes in the order written, each followed by the nodes inside it.
	Nodes []OutlineNode
	// Mentions are the places that name a node.
	Mentions []Mention
	// Keys are the keys of the state that the file declares or writes; Variables and
	// Settings the top-level keys of these sections; Secrets the secrets it reads.
	Keys, Variables, Settings, Secrets []string
	// Modules are the paths of the Lua modules by namespace.
	Modules map[string]string
}

// OutlineNode is a node or a step.
type OutlineNode struct {
	Name string
	// Pos is where the name is written, Begin where the node begins.
	Pos, Begin diag.Pos
	// Uses is the action, if the node calls one.
	Uses string
	// Depth is the number of nodes around it. List identifies the list that it is in:
	// names in routes are those of the same list.
	Depth, List int
}

// Mention is a place that names a node.
type Mention struct {
	Name string
	// Pos is where the name is written. If Reads is true, it is the beginning of an
	// expression that contains the name: nodes.x, or a key x of the state, if Key is true.
	Pos        diag.Pos
	Reads, Key bool
	// List is the list of the node; it is -1 if Reads is true.
	List int
}

// Outline returns the outline of a workflow file, which can have mistakes; nil if the
// file is not readable as a workflow at all. Nothing runs.
func (h *Host) Outline(s *Source) *Outline {
	wf, _ := spec.Load(s.File, spec.Options{Embedded: s.read})
	if wf == nil {
		return nil
	}
	o := &outliner{Outline: Outline{Modules: map[string]string{}}}
	o.list(wf.Nodes, wf.Edges, 0)
	for _, name := range slices.Concat(wf.Config.InterruptBefore, wf.Config.InterruptAfter) {
		o.mention(name, 0)
	}
	for _, im := range wf.Imports {
		if im.Kind == spec.ImportPath {
			namespace := im.Namespace
			if namespace == "" {
				namespace = strings.TrimSuffix(filepath.Base(im.Path), filepath.Ext(im.Path))
			}
			o.Modules[namespace] = im.Path
		}
	}
	env := graph.Env{Lua: script.New(luaOptions(wf.Settings))}
	if c, _, err := h.catalog(wf.Settings, false); err == nil {
		env.Actions = c
	}
	d := graph.NewDraft(wf, env)
	o.Keys, o.Variables, o.Settings = d.Keys, sortedKeys(wf.Variables), sortedKeys(wf.Settings)
	for _, n := range d.Secrets {
		o.Secrets = append(o.Secrets, n.Path[0])
	}
	o.reads(d.Names.Nodes, false)
	o.reads(d.Reads, true)
	return &o.Outline
}

func sortedKeys(m map[string]any) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// outliner collects an outline.
type outliner struct {
	Outline
	lists int
}

func (o *outliner) list(nodes []*spec.Node, edges []*spec.Edge, depth int) {
	list := o.lists
	o.lists++
	for _, n := range nodes {
		node := OutlineNode{Name: n.Name, Pos: n.NamePos, Begin: n.Pos, Depth: depth, List: list}
		if call, ok := n.Body.(*spec.ActionBody); ok {
			node.Uses = call.Uses.Value
		}
		o.Nodes = append(o.Nodes, node)
		for _, rule := range n.Goto {
			o.mention(rule.To, list)
		}
		if n.Fallback != nil {
			o.mention(*n.Fallback, list)
		}
		o.inside(n.Body, list, depth+1)
	}
	for _, e := range edges {
		o.mention(e.From, list)
		for _, to := range e.To {
			o.mention(to, list)
		}
		for _, target := range e.Targets {
			o.mention(target.To, list)
		}
		for _, name := range []*spec.Text{e.Default, e.FanIn} {
			if name != nil {
				o.mention(*name, list)
			}
		}
	}
}

// inside adds the nodes of a body in a node of a list.
func (o *outliner) inside(body spec.Body, list, depth int) {
	switch b := body.(type) {
	case *spec.StepsBody:
		o.list(b.Steps, nil, depth)
	case *spec.LoopBody:
		o.list(b.Nodes, nil, depth)
	case *spec.MapBody:
		if b.FanIn != nil {
			o.mention(*b.FanIn, list)
		}
		o.inside(b.Do, list, depth)
	}
}

func (o *outliner) mention(name spec.Text, list int) {
	if name.Line > 0 {
		o.Mentions = append(o.Mentions, Mention{Name: name.Value, Pos: name.Pos, List: list})
	}
}

func (o *outliner) reads(names []graph.Name, key bool) {
	for _, n := range names {
		o.Mentions = append(o.Mentions, Mention{Name: n.Path[0], Pos: n.Pos, Reads: true, Key: key, List: -1})
	}
}
