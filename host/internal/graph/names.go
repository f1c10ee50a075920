package graph

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Name is an expression that reads secrets.x or env.x. Path is x and the keys
// after it; it is empty if the whole root is read.
type Name struct {
	Path []string
	Pos  diag.Pos
}

// Names are the names of a workflow file and its subgraphs that are known only
// at run time, and the nodes that the file alone reads as nodes.x.
type Names struct{ Secrets, Env, Nodes []Name }

// readName checks a name with a known root. Names that the file defines are
// checked here, nodes in unknownNodes, the rest before a run.
func (c *compiler) readName(pos diag.Pos, root string, path []string) {
	if len(path) == 0 {
		return
	}
	switch root {
	case "variables":
		c.defined(pos, root, c.wf.Variables, path)
	case "settings":
		c.defined(pos, root, c.wf.Settings, path)
	case "run":
		c.defined(pos, root, map[string]any{"id": "", "started_at": "", "data_dir": ""}, path)
	case "checkpoint":
		c.defined(pos, root, map[string]any{"dir": "", "last": ""}, path)
	case "nodes":
		c.names.Nodes = append(c.names.Nodes, Name{path, pos})
	case "secrets":
		c.names.Secrets = append(c.names.Secrets, Name{path, pos})
	case "env":
		c.names.Env = append(c.names.Env, Name{path, pos})
	}
}

// defined reports a name that the file does not define.
func (c *compiler) defined(pos diag.Pos, root string, values map[string]any, path []string) {
	if at, known, ok := missingStep(values, path); ok {
		hint := diag.Suggest(path[at], known)
		switch {
		case hint != "":
		case root == "variables" || root == "settings":
			hint = "define it under " + root + ":"
		default:
			hint = "there are: " + strings.Join(known, ", ")
		}
		c.diags.Errorf(diagcode.UnknownName, pos, hint, "unknown name %s", dotted(root, path[:at+1]))
	}
}

// missingStep returns the index of the first key of a path that does not exist,
// and the keys that do.
func missingStep(v any, path []string) (at int, known []string, missing bool) {
	for i, step := range path {
		switch given := v.(type) {
		case map[string]any:
			inner, ok := given[step]
			if !ok {
				return i, slices.Sorted(maps.Keys(given)), true
			}
			v = inner
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(given) {
				return i, nil, true
			}
			if n < 0 {
				return 0, nil, false
			}
			v = given[n]
		case nil:
			return i, nil, true
		case string:
			if _, err := strconv.Atoi(step); err != nil && !expr.IsTemplate(given) {
				return i, nil, true
			}
			return 0, nil, false // a character of a string
		default:
			return i, nil, true
		}
	}
	return 0, nil, false
}

func dotted(root string, path []string) string { return root + "." + strings.Join(path, ".") }

// unknownNodes reports names of nodes that the file does not have.
func (c *compiler) unknownNodes(g *Graph) {
	if len(c.names.Nodes) == 0 {
		return
	}
	known := map[string]bool{}
	eachNode(g.Nodes, func(n *Node) { known[n.Name] = true })
	for _, n := range c.names.Nodes {
		if name := n.Path[0]; !known[name] {
			hint := diag.Suggest(name, slices.Sorted(maps.Keys(known)))
			if hint == "" {
				hint = nodeHint(g, name)
			}
			c.diags.Errorf(diagcode.UnknownName, n.Pos, hint, "unknown node %q", name)
		}
	}
}

// HasNode reports whether a node has the name, including inner nodes.
func (g *Graph) HasNode(name string) bool {
	found := false
	eachNode(g.Nodes, func(n *Node) { found = found || n.Name == name })
	return found
}

// MissingSecrets reports the secrets that a workflow reads but that were not
// given.
func (g *Graph) MissingSecrets(given map[string]any) diag.List {
	var diags diag.List
	for _, n := range g.Names.Secrets {
		at, known, missing := missingStep(given, n.Path)
		if !missing {
			continue
		}
		hint := diag.Suggest(n.Path[at], known)
		if hint == "" {
			hint = "pass it with --secrets or --secrets-env"
		}
		diags.Errorf(diagcode.SecretMissing, n.Pos, hint, "the secret %q is missing", strings.Join(n.Path[:at+1], "."))
	}
	diags.Sort()
	return slices.Compact(diags)
}

// UnsetEnv warns of environment variables that a workflow reads but that are not
// set.
func (g *Graph) UnsetEnv(lookup func(string) (string, bool)) diag.List {
	var diags diag.List
	for _, n := range g.Names.Env {
		if _, set := lookup(n.Path[0]); !set {
			diags.Warnf(diagcode.VariableMissing, n.Pos, "set it, or give a default: {{ env."+n.Path[0]+` | default("...") }}`,
				"the environment variable %s is not set", n.Path[0])
		}
	}
	return diags
}
