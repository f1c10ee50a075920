package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// templateRoots are the predefined names of every template.
var templateRoots = []string{"state", "variables", "settings", "secrets", "env", "nodes", "run", "checkpoint", "result", "parallel_results"}

func withRoots(roots []string, more ...string) []string {
	return append(slices.Clone(roots), more...)
}

// read is an expression that reads a key of the state.
type read struct {
	key string
	pos diag.Pos
	// isRoot reports whether the key is the first name of a template expression;
	// roots are the additional roots there.
	isRoot bool
	roots  []string
}

// readTemplate records the names that a template reads. In a condition a bare
// name is a key of the state; elsewhere it can be a misspelt root.
func (c *compiler) readTemplate(text spec.Text, t *expr.Template, roots []string, isCondition bool) {
	for _, ref := range t.Roots() {
		pos := text.At(ref.Line, ref.Column)
		switch {
		case ref.Root == "state" && len(ref.Path) > 0:
			c.reads = append(c.reads, read{key: ref.Path[0], pos: pos})
		case slices.Contains(roots, ref.Root):
		case ref.Root == "env" && ref.Optional:
		case slices.Contains(templateRoots, ref.Root):
			c.readRoot(pos, ref.Root, ref.Path)
		default:
			c.reads = append(c.reads, read{key: ref.Root, pos: pos, isRoot: !isCondition, roots: roots})
		}
	}
}

// readRoot records a read of a root other than the state.
func (c *compiler) readRoot(pos diag.Pos, root string, path []string) {
	if root == "settings" {
		c.settings[strings.Join(path[:min(1, len(path))], "")] = true
	}
	c.readName(pos, root, path)
}

// readLua records the names that a chunk reads, and warns of assignments to the
// state, which have no effect.
func (c *compiler) readLua(text spec.Text, chunk *script.Chunk) {
	for _, r := range chunk.StateReads() {
		c.reads = append(c.reads, read{key: r.Name, pos: inChunk(text, r.Position)})
	}
	for _, p := range chunk.StateAssignments() {
		c.diags.Warnf(diagcode.StateAssignment, inChunk(text, p), "return the changes: return {key = value}",
			"the state is a copy here: the assignment changes nothing")
	}
}

// luaGlobals are the predefined names of a node's code besides the libraries.
var luaGlobals = []string{"state", "variables", "parallel_results"}

// luaWords are candidates for the correction of a misspelt name.
var luaWords = []string{"return", "local", "function", "then", "else", "elseif", "while", "repeat", "until", "tea", "string", "table", "math", "ipairs", "pairs", "tostring", "tonumber", "error", "require"}

// luaInstead are names of Lua and of other languages with what replaces them.
var luaInstead = map[string]string{
	"os":   "the sandbox has no os; in templates, {{ run.started_at }} is a time and {{ env.NAME }} an environment variable",
	"io":   `the sandbox has no io; call an action: tea.action("file.read", {path = "notes.txt"})`,
	"json": "write tea.json.encode(value) or tea.json.decode(text)",
	"null": "write nil, or tea.null for a null in JSON",
	"None": "write nil, or tea.null for a null in JSON",
	"len":  "write #list for the length of a list or text",
}

// unknownGlobals warns of undefined names in a node's code. They are nil, and a
// typo in a keyword often becomes a call of such a name.
func (c *compiler) unknownGlobals(text spec.Text, chunk *script.Chunk, roots []string) {
	known := withRoots(luaGlobals, roots...)
	warned := map[string]bool{}
	for _, ref := range chunk.Globals() {
		if ref.Name == "variables" {
			c.readName(inChunk(text, ref.Position), ref.Name, ref.Path)
		}
		if warned[ref.Name] || slices.Contains(known, ref.Name) {
			continue
		}
		warned[ref.Name] = true
		hint := cmp.Or(luaInstead[ref.Name], diag.Suggest(ref.Name, slices.Concat(known, luaWords)))
		if hint == "" || c.declares(ref.Name) {
			hint = fmt.Sprintf("write state.%s for a key of the state, or set it before: local %s = ...", ref.Name, ref.Name)
		}
		c.diags.Warnf(diagcode.UnknownGlobal, inChunk(text, ref.Position), hint, "Lua: %q is not defined here; it is nil", ref.Name)
	}
}

// inChunk returns the position in the file of a position in Lua code.
func inChunk(code spec.Text, p script.Position) diag.Pos {
	return code.At(p.Line-code.Line+1, p.Column)
}

// unknownRoots reports names that are neither roots of templates nor keys of
// the state.
func (c *compiler) unknownRoots(g *Graph) {
	keys, _ := stateKeys(g)
	for _, r := range c.reads {
		if !r.isRoot || keys[r.key] {
			continue
		}
		hint := diag.Suggest(r.key, withRoots(templateRoots, r.roots...))
		if hint == "" {
			hint = "write state." + r.key + " for a key of the state"
		}
		c.diags.Errorf(diagcode.UnknownRoot, r.pos, hint, "unknown name %q in a template", r.key)
	}
}

// neverWritten warns of keys that are read but never written. It needs to know
// all writes: a result of unknown shape can contain any key.
func neverWritten(g *Graph, diags *diag.List) {
	keys, all := stateKeys(g)
	if !all {
		return
	}
	known := slices.Sorted(maps.Keys(keys))
	for _, r := range g.reads {
		if r.isRoot || keys[r.key] {
			continue
		}
		hint := diag.Suggest(r.key, known)
		if hint == "" {
			hint = "declare it in state_schema if it is part of the input"
		}
		diags.Warnf(diagcode.NeverWritten, r.pos, hint, "the state key %q is read but never written", r.key)
	}
}

// externalRoots are the roots whose values can change before a resume: they are
// stored neither in the journal nor in the workflow.
var externalRoots = []string{"settings", "secrets", "env", "run", "checkpoint"}

// Varies reports whether a resume can evaluate v, which can be nil, to another
// value in the same state, because v reads more than the journal reproduces, or
// chooses at random.
func Varies(v *expr.Value) bool {
	if v == nil {
		return false
	}
	return slices.ContainsFunc(v.Templates(), func(l expr.Located) bool {
		text := l.Template.Text()
		return strings.Contains(text, "random") || slices.ContainsFunc(l.Template.Roots(), func(ref expr.Ref) bool {
			return slices.Contains(externalRoots, ref.Root) ||
				ref.Root == "parallel_results" && (strings.Contains(text, "timing_ms") || strings.Contains(text, "retry_count") || strings.Contains(text, "circuit_state"))
		})
	})
}

// derived reports whether a part of an output mapping is derived from the result.
func derived(v *expr.Value) bool {
	if Varies(v) {
		return false
	}
	return v == nil || !slices.ContainsFunc(v.Templates(), func(l expr.Located) bool {
		return slices.ContainsFunc(l.Template.Roots(), func(ref expr.Ref) bool { return ref.Root != "result" })
	})
}

// resultsRoot is the template root of the branch results in a fan-in node.
const resultsRoot = "parallel_results"

// readers records for every fan-in node whether it reads the results of the
// branches. If not, a failed branch fails the run.
func (c *compiler) readers(g *Graph) {
	note := func(join *Node) {
		if join != nil {
			join.GuardReadsResults = c.conditionReads(join.If)
			join.ReadsResults = c.nodeReads(join)
		}
	}
	for _, r := range g.allRoutes() {
		if r.FanOut != nil {
			note(r.FanOut.Join)
		}
	}
	for _, n := range g.Nodes {
		if m, ok := n.Body.(*Map); ok {
			note(m.FanIn)
		}
	}
}

func (c *compiler) nodeReads(n *Node) bool {
	if c.conditionReads(n.If) {
		return true
	}
	switch b := n.Body.(type) {
	case *Action:
		return valueReads(b.With) || outputReads(b.Output)
	case *Lua:
		return c.chunkReads(b.Chunk, nil) || outputReads(b.Output)
	case *Steps:
		return slices.ContainsFunc(b.Steps, c.nodeReads)
	case *Loop: // its body does not have them
		return outputReads(b.Output)
	case *Map:
		return valueReads(b.Items) || outputReads(b.Output)
	case *Subgraph:
		return valueReads(b.Input) || outputReads(b.Output)
	}
	return false
}

func (c *compiler) conditionReads(cond *Condition) bool {
	switch {
	case cond == nil:
		return false
	case cond.template != nil:
		return templateReads(cond.template)
	}
	return c.chunkReads(cond.chunk, nil)
}

// chunkReads also checks the modules that the chunk requires.
func (c *compiler) chunkReads(chunk *script.Chunk, seen []*script.Chunk) bool {
	if chunk == nil || slices.Contains(seen, chunk) {
		return false
	}
	if chunk.Reads(resultsRoot) {
		return true
	}
	seen = append(seen, chunk)
	for _, name := range chunk.Requires() {
		if m := c.env.Modules[name]; m != nil && c.chunkReads(m.Chunk, seen) {
			return true
		}
	}
	return false
}

func outputReads(o *Output) bool {
	return o != nil && slices.ContainsFunc(o.Fields, func(f OutputField) bool { return valueReads(f.Value) })
}

func valueReads(v *expr.Value) bool {
	return v != nil && slices.ContainsFunc(v.Templates(), func(t expr.Located) bool { return templateReads(t.Template) })
}

func templateReads(t *expr.Template) bool {
	return slices.ContainsFunc(t.Roots(), func(r expr.Ref) bool { return r.Root == resultsRoot })
}
