package inspect

import (
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/spec"
)

func node(n *graph.Node) Node {
	out := Node{Name: n.Name, Description: n.Spec.Description, Line: n.Spec.Line, Notes: notes(n)}
	if n.If != nil {
		out.If = oneLine(n.If.Value)
	}
	body(&out, n.Body)
	return out
}

func body(out *Node, b graph.Body) {
	switch b := b.(type) {
	case *graph.Action:
		out.Kind, out.Uses = "action", b.Uses
	case *graph.Lua:
		out.Kind = "lua"
	case *graph.Steps:
		out.Kind = "steps"
		for _, step := range b.Steps {
			out.Steps = append(out.Steps, node(step))
		}
	case *graph.Loop:
		out.Kind, out.Body = "loop", describe(b.Body)
		condition := ""
		if b.Condition != nil {
			condition = "while " + oneLine(b.Condition.Value)
			out.Notes = append(out.Notes, condition)
		}
		out.Body.Edges = append(out.Body.Edges, Edge{From: end, To: start, Kind: repeat, Label: condition})
		out.Notes = append(out.Notes, fmt.Sprintf("at most %d passes", b.MaxIterations))
	case *graph.Map:
		var item Node
		body(&item, b.Each.Body)
		out.Kind, out.Uses, out.Steps, out.Body = "map", item.Uses, item.Steps, item.Body
		out.Notes = append(out.Notes, "for each "+b.ItemVar)
	case *graph.Subgraph:
		out.Kind = "subgraph"
		if b.Graph != nil {
			out.Body = New(b.Graph)
		}
	default:
		out.Kind = "pass"
	}
}

// notes are what a reader should know of a node beside its body.
func notes(n *graph.Node) []string {
	var out []string
	if n.Retry.MaxRetries > 0 {
		out = append(out, fmt.Sprintf("retry %d", n.Retry.MaxRetries))
	}
	if n.Timeout > 0 {
		out = append(out, "timeout "+n.Timeout.String())
	}
	if n.OnError == spec.OnErrorContinue {
		out = append(out, "goes on after a failure")
	}
	if n.InterruptBefore {
		out = append(out, "interrupt before")
	}
	if n.InterruptAfter {
		out = append(out, "interrupt after")
	}
	return out
}

// what is a node's body in a few words.
func (n *Node) what() string {
	switch {
	case n.Kind == "map" && n.Uses != "":
		return "map of " + n.Uses
	case n.Uses != "":
		return n.Uses
	}
	return n.Kind
}

const mostLabel = 60

// oneLine cuts a condition to what fits beside an arrow.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > mostLabel {
		return string(runes[:mostLabel-1]) + "…"
	}
	return text
}
