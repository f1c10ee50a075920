package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// unknown reports a key of n that its section does not have, with a hint as to where
// it belongs or what the author probably meant.
func (c *checker) unknown(n, k *source.Node, path string, s *section) {
	calls := s.find("uses") != nil && (n.Get("uses") != nil || n.Get("action") != nil)
	c.errorf(diagcode.UnknownKey, k, path, c.keyHint(k.Text, s, calls), "unknown key %q in %s", k.Text, s.title)
}

// keyHint returns the hint for an unknown key; calls reports whether n also calls an
// action.
func (c *checker) keyHint(word string, s *section, calls bool) string {
	for _, name := range []string{s.title + "." + word, s.kind() + "." + word, word} {
		if hint, ok := otherNames[name]; ok {
			return hint
		}
	}
	if places := c.grammar.placesOf(word, s); len(places) > 0 {
		return fmt.Sprintf("%s belongs to: %s", word, strings.Join(places, ", "))
	}
	var candidates []string
	for _, k := range s.keys {
		candidates = append(candidates, k.spellings()...)
	}
	suggestion := diag.Suggest(word, candidates)
	if calls {
		return strings.TrimSpace(suggestion + " Parameters of an action go under with.")
	}
	return cmp.Or(suggestion, "custom keys begin with x-")
}

// placesOf returns the kinds of section that have a key with this name.
func (g *grammar) placesOf(word string, except *section) []string {
	var places []string
	for _, s := range g.sections() {
		if s.kind() != except.kind() && s.find(word) != nil && !slices.Contains(places, s.kind()) {
			places = append(places, s.kind())
		}
	}
	return places
}

// otherNames are hints for key names of other tools, in any section or in one section.
var otherNames = map[string]string{
	"retries":                            "the number of retries is retry.max_retries",
	"max_attempts":                       "the number of retries is retry.max_retries",
	"retry_policy":                       "put a node's retries under retry: {max_retries: ...}, and retries of every node under error_policy",
	"depends_on":                         "order comes from the list, from edges or from goto: add an edge {from: ..., to: ...}",
	"needs":                              "order comes from the list, from edges or from goto: add an edge {from: ..., to: ...}",
	"timeout":                            "write timeout_seconds",
	"next":                               "write goto",
	"node.when":                          "write if",
	"node.condition":                     "write if to skip the node; condition belongs to type: while_loop",
	"goto rule.when":                     "write if",
	"edge.if":                            "write when",
	"edge.source":                        "write from",
	"edge.target":                        "write to",
	"node.inputs":                        "parameters of an action go under with, the input of a subgraph under input",
	"node.args":                          "parameters of an action go under with",
	"node.arguments":                     "parameters of an action go under with",
	"node.parameters":                    "parameters of an action go under with",
	"node.code":                          "Lua code goes under run",
	"node.python":                        "Lua is the only script language; it goes under run",
	"node.foreach":                       "write type: dynamic_parallel with items",
	"node.for_each":                      "write type: dynamic_parallel with items",
	"node.while":                         "write type: while_loop with condition and body",
	"node.loop":                          "write type: while_loop with condition and body",
	"node.body":                          "body needs type: while_loop",
	"node.items":                         "items needs type: dynamic_parallel",
	"node of type dynamic_parallel.run":  "write steps: [{run: ...}]",
	"node of type dynamic_parallel.uses": "write action: {uses: ..., with: {...}}",
	"node of type dynamic_parallel.with": "write action: {uses: ..., with: {...}}",
	"node of type while_loop.run":        "give the loop a body: list of nodes",
	"node of type while_loop.uses":       "give the loop a body: list of nodes",
	"node of type while_loop.steps":      "give the loop a body: list of nodes",
	"import.file":                        "write path",
	"workflow.steps":                     "write nodes",
	"workflow.tasks":                     "write nodes",
	"workflow.vars":                      "write variables",
	"workflow.env":                       "write ${VAR} in settings, or {{ env.VAR }} in a template",
	"workflow.state":                     "defaults of the state are initial_state, its types are state_schema",
	"workflow.inputs":                    "defaults of the state are initial_state, its types are state_schema",
	"workflow.retry":                     "the default of every node is error_policy",
	"__delete__":                         "__delete__ works in an overlay only",
}
