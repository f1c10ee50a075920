package spec

import (
	"iter"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Node is one entry of nodes, of a loop's body or of steps.
type Node struct {
	diag.Pos
	Name string
	// NamePos is the position of the name; Pos for a step without one.
	NamePos     diag.Pos
	Description string
	Metadata    map[string]any
	// Body is what the node does; nil passes the state through.
	Body Body
	// If skips the node when it is false; nil = always run.
	If *Text
	// Goto is tried before the edges; empty = no goto.
	Goto    []Rule
	Retry   *Retry
	Timeout time.Duration
	// Fallback is the node that runs instead of this one after a failure.
	Fallback *Text
	// OnError is the effect of a failure; "" = as in error_policy.
	OnError OnError
	// Once requires that the calls of the node have their effects at most once, even if the action's manifest does not.
	Once bool
	// OnUnknown is the reaction to a call with an unknown outcome; "" = OnUnknownFail.
	OnUnknown OnUnknown
	// OnUnknownPos is the position of the key on_unknown.
	OnUnknownPos diag.Pos
	// Verify is the check of OnUnknownVerify; nil = none.
	Verify *Verify
	// InterruptBefore and InterruptAfter stop the run at this node.
	InterruptBefore, InterruptAfter bool
	// FanIn marks the node as the end of parallel branches.
	FanIn bool
	// Parallel overrides config.parallel for a fan-out from this node.
	Parallel *Parallel
}

// OnUnknown is the reaction to a call with an unknown outcome.
type OnUnknown string

// OnUnknownFail fails the node, OnUnknownAsk asks a person, OnUnknownRepeat makes the
// call again, and OnUnknownVerify calls another action to find out.
const (
	OnUnknownFail   OnUnknown = "fail"
	OnUnknownAsk    OnUnknown = "ask"
	OnUnknownRepeat OnUnknown = "repeat"
	OnUnknownVerify OnUnknown = "verify"
)

// Verify is a call that finds out whether an effect happened: it did if the condition
// on its result is true.
type Verify struct {
	Call *ActionBody
	If   Text
}

// Rule is one entry of goto; a nil If is always true.
type Rule struct {
	diag.Pos
	If *Text
	To Text
}

// Body is one of [*ActionBody], [*LuaBody], [*StepsBody], [*LoopBody],
// [*MapBody], [*SubgraphBody].
type Body interface{ isBody() }

// ActionBody calls an action.
type ActionBody struct {
	diag.Pos
	Uses   Text
	With   *Tree
	Output *Output
	// Own has the keys of the node that can also be parameters of the action, such as
	// metadata; nil if there are none.
	Own *Tree
	// Inline reports whether the parameters are next to action:. OwnDiags then has the
	// mistakes of Own as keys of the node, by key; see Claim.
	Inline   bool
	OwnDiags map[string]diag.List
}

// LuaBody runs Lua code.
type LuaBody struct {
	diag.Pos
	Code   Text
	Output *Output
}

// StepsBody runs bodies in order on one working copy of the state. A step is a node
// without routing; the name of an unnamed step is its index.
type StepsBody struct {
	diag.Pos
	Steps []*Node
}

// LoopBody is a while loop.
type LoopBody struct {
	diag.Pos
	Condition     Text
	MaxIterations int
	// StopAtMax ends the loop at the maximum instead of failing.
	StopAtMax bool
	Nodes     []*Node
	Output    *Output
}

// MapBody runs one body for each item of a list, concurrently.
type MapBody struct {
	diag.Pos
	Items             *Tree
	ItemVar, IndexVar string
	MaxConcurrency    int
	FailFast          bool
	// FanIn is the node that gets the results; nil = the node after the map if it
	// is marked fan_in: true.
	FanIn *Text
	// Do is the body of a branch: *ActionBody, *StepsBody or *SubgraphBody.
	Do     Body
	Output *Output
}

// SubgraphBody runs another workflow.
type SubgraphBody struct {
	diag.Pos
	Path   Text
	Input  *Tree
	Output *Output
	// Workflow is the parsed file.
	Workflow *Workflow
}

func (*ActionBody) isBody()   {}
func (*LuaBody) isBody()      {}
func (*StepsBody) isBody()    {}
func (*LoopBody) isBody()     {}
func (*MapBody) isBody()      {}
func (*SubgraphBody) isBody() {}

// Output is the destination of a result: one key, or an expression per key. A nil
// Output merges an object into the state and stores any other result under the
// node's name.
type Output struct {
	diag.Pos
	Key    string
	Fields []OutputField
}

// OutputField stores an expression over `result` under a key.
type OutputField struct {
	Key   string
	Value *Tree
}

// Bodies returns every body of nodes and of the nodes inside them (steps, loops and
// maps, but not subgraphs), in the order written.
func Bodies(nodes []*Node) iter.Seq[Body] {
	return func(yield func(Body) bool) {
		for _, n := range nodes {
			if n.Body != nil && !visit(n.Body, yield) {
				return
			}
		}
	}
}

func visit(b Body, yield func(Body) bool) bool {
	if !yield(b) {
		return false
	}
	var inner []*Node
	switch b := b.(type) {
	case *StepsBody:
		inner = b.Steps
	case *LoopBody:
		inner = b.Nodes
	case *MapBody:
		return b.Do == nil || visit(b.Do, yield)
	}
	for body := range Bodies(inner) {
		if !yield(body) {
			return false
		}
	}
	return true
}

// Subgraphs returns the workflows that the nodes of this one run, in the order
// written.
func (w *Workflow) Subgraphs() []*Workflow {
	var found []*Workflow
	for body := range Bodies(w.Nodes) {
		if sub, ok := body.(*SubgraphBody); ok && sub.Workflow != nil {
			found = append(found, sub.Workflow)
		}
	}
	return found
}

// Edge is one entry of edges. Several targets, or Parallel, make a fan-out.
type Edge struct {
	diag.Pos
	From Text
	To   []Text
	// When guards the edge; nil = the default.
	When *Text
	// Condition is Lua or Jinja code that returns the name of a target.
	Condition *Text
	Targets   []Target
	Default   *Text
	Parallel  bool
	// FanIn is the fan-in node of the branches; nil = determined by the graph.
	FanIn *Text
}

// Target is one entry of an edge's targets: result -> node.
type Target struct {
	Result string
	To     Text
}
