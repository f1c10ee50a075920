package file

import (
	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/filter"
)

// Condition compares the nodes that a path selects with a value. It holds if
// one of them fits; a negative comparison holds if all of them do.
type Condition struct {
	path       *JSONPath
	comparison filter.Comparison
}

// signs are the operators that may also be written as signs.
func signs() map[string]string {
	return map[string]string{"": "eq", "=": "eq", "==": "eq", "!=": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
}

// NewCondition checks a condition. wanted is in the value model.
func NewCondition(path, op string, wanted any) (Condition, error) {
	p, err := ParseJSONPath(path)
	if err != nil {
		return Condition{}, err
	}
	if name, ok := signs()[op]; ok {
		op = name
	}
	comparison, err := filter.NewComparison(op, wanted)
	if err != nil {
		return Condition{}, tea.Errorf(tea.ValidationError, "%s: %w", path, err)
	}
	return Condition{path: p, comparison: comparison}, nil
}

// find reports whether the condition holds for a document, and for which nodes;
// a negative condition that holds has no nodes.
func (c Condition) find(document any) (nodes []Node, holds bool) {
	negative := c.comparison.Negative()
	c.path.visit(document, func(trail []segment, v any) bool {
		if c.comparison.Holds(v, true) != negative {
			nodes = append(nodes, Node{Path: pathOf(trail), Value: v})
		}
		return len(nodes) < maxValues && (!negative || len(nodes) == 0)
	})
	if negative {
		return nil, len(nodes) == 0
	}
	return nodes, len(nodes) > 0
}
