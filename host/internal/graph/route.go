package graph

import "github.com/the-edge-agent/tea/sdk/x/diag"

// Route determines the next node. The parts are tried in the order of the
// fields.
type Route struct {
	// If Goto has rules, the other fields are not used.
	Goto []Rule
	// FanOut starts the branches whose condition is true, if any.
	FanOut *FanOut
	// Arms are the guarded edges, tried in the order written.
	Arms []Arm
	// Default is the edge without a guard; nil = none.
	Default *Target
	// Implicit is the next node in the list, for a node without goto and edges.
	Implicit *Target
}

// Explicit reports whether the workflow specifies the route.
func (r *Route) Explicit() bool { return r.Implicit == nil }

// Target is the end of a route; a nil Node is the end of the run.
type Target struct{ Node *Node }

// Name returns the name of the target for messages and events.
func (t Target) Name() string {
	if t.Node == nil {
		return "__end__"
	}
	return t.Node.Name
}

// Rule is one rule of goto; a nil If is always true.
type Rule struct {
	If *Condition
	To Target
}

// Arm is one edge: a guard with its target, or a switch.
type Arm struct {
	When   *Condition
	To     Target
	Switch *Switch
}

// Switch is an edge with condition and targets.
type Switch struct {
	Pos       diag.Pos
	Condition *Condition
	Targets   []SwitchTarget
	Default   *Target
}

// SwitchTarget leads from one result of the condition to a node.
type SwitchTarget struct {
	Result string
	To     Target
}

// FanOut starts several branches.
type FanOut struct {
	Branches []Branch
	// Join is the fan-in node; nil = the branches run to their end and their
	// updates are merged.
	Join   *Node
	Policy Parallel

	// entries are the entries of the branches.
	entries map[*Node]bool
}

// Branch begins at Entry if When is true (nil = always).
type Branch struct {
	Entry *Node
	When  *Condition
}

// only returns the single node that the route can lead to; nil if there are
// several, or the run ends.
func (r *Route) only() *Node {
	if next := r.Targets(); len(next) == 1 && r.FanOut == nil {
		return next[0]
	}
	return nil
}

// Targets returns every node that the route can lead to, in the order written;
// nil is the end.
func (r *Route) Targets() []*Node {
	var out []*Node
	for _, rule := range r.Goto {
		out = append(out, rule.To.Node)
	}
	if len(out) > 0 {
		return out
	}
	if r.FanOut != nil {
		for _, b := range r.FanOut.Branches {
			out = append(out, b.Entry)
		}
	}
	for _, arm := range r.Arms {
		if arm.Switch == nil {
			out = append(out, arm.To.Node)
			continue
		}
		for _, t := range arm.Switch.Targets {
			out = append(out, t.To.Node)
		}
		if arm.Switch.Default != nil {
			out = append(out, arm.Switch.Default.Node)
		}
	}
	if r.Default != nil {
		out = append(out, r.Default.Node)
	}
	if r.Implicit != nil {
		out = append(out, r.Implicit.Node)
	}
	return out
}
