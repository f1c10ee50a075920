package graph

import (
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/host/internal/state"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Graph is a list of nodes with routing: a workflow, or the body of a loop.
// It is safe for concurrent use.
type Graph struct {
	// Workflow is the graph's file; for a loop's body, the enclosing file.
	Workflow *spec.Workflow
	Nodes    []*Node
	// Start is where a run begins.
	Start  Route
	Schema *state.Schema
	// Modules are the modules that Lua code can require, by namespace.
	Modules map[string]*script.Module
	// Settings are the settings of the file.
	Settings *Settings
	// Names are the names that depend on the run; set for a whole workflow only.
	Names Names

	byName map[string]*Node
	// reads are the keys of the state that the workflow reads, including its
	// loops.
	reads []read
}

// Node returns a node by name, or nil.
func (g *Graph) Node(name string) *Node { return g.byName[name] }

// allRoutes returns the routes of the start and of every node.
func (g *Graph) allRoutes() []*Route {
	routes := []*Route{&g.Start}
	for _, n := range g.Nodes {
		routes = append(routes, &n.Route)
	}
	return routes
}

// Node is one compiled node. Compare nodes by pointer.
type Node struct {
	Name string
	Spec *spec.Node
	// Index is the node's index in the list.
	Index int
	// Body is what the node does; nil passes the state through.
	Body    Body
	If      *Condition
	Route   Route
	Retry   Retry
	OnError spec.OnError
	// Fallback runs instead of the node after a failure; nil = none.
	Fallback *Node
	Timeout  time.Duration
	// Verify finds out whether an effect happened; nil = none.
	Verify *Verify

	InterruptBefore, InterruptAfter bool

	// ReadsResults reports whether a fan-in node uses parallel_results in its
	// condition, parameters or code; GuardReadsResults, in its condition.
	ReadsResults, GuardReadsResults bool

	// following is the next node in the list, nil at its end.
	following *Node
}

// Verify is a call and a condition on its result; see [spec.Verify].
type Verify struct {
	Call *Action
	If   *Condition
}

// Body is one of [*Action], [*Lua], [*Steps], [*Loop], [*Map], [*Subgraph].
type Body interface{ isBody() }

// Action calls an action.
type Action struct {
	Uses   string
	With   *expr.Value
	Output *Output
	// Deferred are the templates, by text, that the action evaluates later; see
	// [tea.Templates].
	Deferred map[string]*expr.Template

	// result is the schema of the result; nil = unknown.
	result *schema.Schema
	files  files
	with   *spec.Tree
}

// Updates reports whether the result is an update of the state; see [tea.Update].
func (a *Action) Updates() bool {
	return a != nil && a.result != nil && a.result.Extra[tea.Update] == true
}

// CodePos returns the position of a line of a parameter; false if the workflow file does
// not contain the text of the parameter as it is.
func (a *Action) CodePos(name string, line int) (diag.Pos, bool) {
	if a.with == nil {
		return diag.Pos{}, false
	}
	text, ok := a.with.Places[name]
	return text.At(line, 0), ok && !expr.IsTemplate(text.Value)
}

// Lua runs a chunk.
type Lua struct {
	Chunk  *script.Chunk
	Output *Output
}

// Steps runs nodes in order on one working copy.
type Steps struct{ Steps []*Node }

// Step returns the step with a name, or nil.
func (s *Steps) Step(name string) *Node {
	if i := slices.IndexFunc(s.Steps, func(n *Node) bool { return n.Name == name }); i >= 0 {
		return s.Steps[i]
	}
	return nil
}

// Loop repeats its body while the condition is true.
type Loop struct {
	Condition     *Condition
	MaxIterations int
	StopAtMax     bool
	Body          *Graph
	Output        *Output
}

// Map runs its body for each item.
type Map struct {
	Items             *expr.Value
	ItemVar, IndexVar string
	// Each is the node that a branch runs; it has the name of the map.
	Each *Node
	// FanIn gets the results; nil = the updates are merged in order.
	FanIn  *Node
	Policy Parallel
	Output *Output
}

// Subgraph runs another workflow.
type Subgraph struct {
	// Graph is nil if the file could not be read.
	Graph  *Graph
	Input  *expr.Value
	Output *Output
}

func (*Action) isBody()   {}
func (*Lua) isBody()      {}
func (*Steps) isBody()    {}
func (*Loop) isBody()     {}
func (*Map) isBody()      {}
func (*Subgraph) isBody() {}

// Output is the destination of a result; see [spec.Output].
type Output struct {
	Key    string
	Fields []OutputField
	// Derived reports whether the update is derived from the result alone.
	Derived bool
}

// OutputField is one key of a mapping.
type OutputField struct {
	Key   string
	Value *expr.Value
}

// Retry is a node's retry policy with every default filled in.
type Retry struct {
	MaxRetries int
	backoff.Policy
	// RetryAfterMax is the longest wait that a failure can ask for. A failure
	// that asks for a longer wait is not retried.
	RetryAfterMax time.Duration
	// Timeout limits all attempts and waits together; 0 = no limit.
	Timeout time.Duration
	RetryOn []string
}

// Parallel is the policy of one fan-out with every default filled in.
type Parallel struct {
	Timeout        time.Duration
	FailFast       bool
	MaxConcurrency int
	Retry          Retry
	Breaker        *spec.Breaker
}
