package graph

import (
	"path"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// files describes how an action uses files, as far as it is known before the run.
type files struct {
	// writes is the path of a file that the action writes into a directory that must
	// exist; "" if there is none or it is computed.
	writes spec.Text
	// creates is the path of a file whose directories the action can create; "" = none,
	// anyFile = any file.
	creates string
}

const anyFile = "*"

// withoutDirs are prefixes of the names of actions that create no directories.
var withoutDirs = []string{"json.", "csv.", "http.", "time.", "trace.", "code.", "human.", "secrets.", "file.", "llm.call", "llm.stream", "embedding.", "web."}

func (c *compiler) files(b *spec.ActionBody) files {
	if c.params.actions == nil {
		return files{}
	}
	info, _ := c.params.actions.Describe(b.Uses.Value)
	if info.Name != "file.write" && info.Name != "file.append" {
		if slices.ContainsFunc(withoutDirs, func(prefix string) bool { return strings.HasPrefix(info.Name, prefix) }) {
			return files{}
		}
		return files{creates: anyFile}
	}
	if b.With == nil {
		return files{}
	}
	text := b.With.Places["path"]
	if b.With.Known != nil || expr.IsTemplate(text.Value) {
		text.Value = ""
	}
	with, _ := b.With.Value.(map[string]any)
	if create := with["create_dirs"]; create == nil || create == false {
		return files{writes: text}
	}
	if text.Value == "" {
		return files{creates: anyFile}
	}
	return files{creates: text.Value}
}

// MissingDirs warns of nodes that write a file into a directory that does not exist
// and that no other node can create before. missing returns the directory of the file
// at a path if it does not exist, else "".
func MissingDirs(g *Graph, missing func(path string) string) diag.List {
	var diags diag.List
	for _, top := range g.Nodes {
		eachNodeWithin(top, func(n *Node) {
			a, ok := n.Body.(*Action)
			if !ok || a.files.writes.Value == "" || n.OnError != spec.OnErrorStop || n.Fallback != nil || top.Fallback != nil {
				return
			}
			given := a.files.writes
			if dir := missing(given.Value); dir != "" && !canCreate(g, top, given.Value) {
				diags.Warnf(diagcode.MissingDirectory, given.Pos, "create it before the run, or add create_dirs: true", "%s: the directory %s does not exist", a.Uses, dir)
			}
		})
	}
	diags.Sort()
	return slices.Compact(diags) // a subgraph can be used twice
}

// canCreate reports whether a node that can run before the end of the node top can
// create the directory of a file.
func canCreate(g *Graph, top *Node, file string) bool {
	found := false
	after := distances(top)
	parallel := slices.ContainsFunc(g.allRoutes(), func(r *Route) bool { return r.FanOut != nil })
	for _, other := range g.Nodes {
		_, later := after[other]
		if _, earlier := distances(other)[top]; !earlier && (later || !parallel) {
			continue
		}
		eachNodeWithin(other, func(n *Node) {
			switch b := n.Body.(type) {
			case *Action:
				found = found || b.files.createsDirOf(file)
			case *Lua:
				found = found || b.Chunk == nil || b.Chunk.Calls()
			}
		})
	}
	return found
}

// createsDirOf reports whether the action can create the directory of a file.
func (f files) createsDirOf(file string) bool {
	if f.creates == "" || f.creates == anyFile || path.IsAbs(f.creates) != path.IsAbs(file) {
		return f.creates != ""
	}
	return strings.HasPrefix(path.Dir(f.creates)+"/", path.Dir(file)+"/")
}

// eachNodeWithin visits a node and those inside it, including those of subgraphs.
func eachNodeWithin(n *Node, visit func(*Node)) {
	eachNode([]*Node{n}, func(n *Node) {
		visit(n)
		if s, ok := n.Body.(*Subgraph); ok && s.Graph != nil {
			for _, inner := range s.Graph.Nodes {
				eachNodeWithin(inner, visit)
			}
		}
	})
}
