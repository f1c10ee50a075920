package file

import (
	"encoding/json"
	"math/big"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Condition compares the nodes that a path names with a value. It holds where
// one of them fits; ne and not_in hold where none does what eq and in ask.
type Condition struct {
	path  *JSONPath
	op    string
	value any
}

// operators are the comparisons by their names, signs included.
func operators() map[string]string {
	return map[string]string{
		"": "eq", "eq": "eq", "=": "eq", "==": "eq", "ne": "ne", "!=": "ne", "gt": "gt", ">": "gt", "gte": "gte", ">=": "gte", "lt": "lt", "<": "lt", "lte": "lte", "<=": "lte",
		"in": "in", "not_in": "not_in", "contains": "contains", "startswith": "startswith", "endswith": "endswith", "exists": "exists",
	}
}

// NewCondition checks a condition. wanted is in the value model.
func NewCondition(path, op string, wanted any) (Condition, error) {
	p, err := ParseJSONPath(path)
	if err != nil {
		return Condition{}, err
	}
	known := operators()[op]
	switch known {
	case "":
		return Condition{}, tea.Errorf(tea.ValidationError, "there is no comparison %q; there are eq, ne, gt, gte, lt, lte, in, not_in, contains, startswith, endswith and exists", op)
	case "in", "not_in":
		if _, ok := wanted.([]any); !ok {
			return Condition{}, tea.Errorf(tea.ValidationError, "%s %s takes a list, not %s", path, op, value.TypeName(wanted))
		}
	case "startswith", "endswith":
		if _, ok := wanted.(string); !ok {
			return Condition{}, tea.Errorf(tea.ValidationError, "%s %s takes a text, not %s", path, op, value.TypeName(wanted))
		}
	case "exists":
		if _, ok := wanted.(bool); !ok && wanted != nil {
			return Condition{}, tea.Errorf(tea.ValidationError, "%s exists takes true or false, not %s", path, value.TypeName(wanted))
		}
	}
	return Condition{path: p, op: known, value: wanted}, nil
}

// find says whether the condition holds for a document, and for which nodes;
// what holds since there is none has no nodes.
func (c Condition) find(document any) (nodes []Node, holds bool) {
	negative := c.op == "ne" || c.op == "not_in" || (c.op == "exists" && c.value == false)
	c.path.visit(document, func(trail []segment, v any) bool {
		if c.fits(v) {
			nodes = append(nodes, Node{Path: pathOf(trail), Value: v})
		}
		return len(nodes) < maxValues && (!negative || len(nodes) == 0)
	})
	if negative {
		return nil, len(nodes) == 0
	}
	return nodes, len(nodes) > 0
}

// fits compares one node; for the negative comparisons with what they deny.
func (c Condition) fits(have any) bool {
	switch c.op {
	case "eq", "ne":
		return value.Equal(have, c.value)
	case "in", "not_in":
		for _, one := range c.value.([]any) { // checked by NewCondition
			if value.Equal(have, one) {
				return true
			}
		}
		return false
	case "contains":
		return contains(have, c.value)
	case "startswith", "endswith":
		text, ok := have.(string)
		affix, _ := c.value.(string)
		if c.op == "startswith" {
			return ok && strings.HasPrefix(text, affix)
		}
		return ok && strings.HasSuffix(text, affix)
	case "exists":
		return true
	}
	order, ok := compare(have, c.value)
	switch c.op {
	case "gt":
		return ok && order > 0
	case "gte":
		return ok && order >= 0
	case "lt":
		return ok && order < 0
	}
	return ok && order <= 0
}

// contains looks into a text, a list or an object's names.
func contains(have, part any) bool {
	switch have := have.(type) {
	case string:
		text, ok := part.(string)
		return ok && strings.Contains(have, text)
	case []any:
		for _, one := range have {
			if value.Equal(one, part) {
				return true
			}
		}
	case map[string]any:
		name, ok := part.(string)
		_, there := have[name]
		return ok && there
	}
	return false
}

// compare orders two numbers or two texts; other things have no order.
func compare(a, b any) (order int, ok bool) {
	x, isText := a.(string)
	y, bothText := b.(string)
	if isText && bothText {
		return strings.Compare(x, y), true
	}
	m, n := number(a), number(b)
	if m == nil || n == nil {
		return 0, false
	}
	return m.Cmp(n), true
}

// number is a value exactly, nil for what is none.
func number(v any) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case float64:
		return new(big.Rat).SetFloat64(v)
	case json.Number:
		i, ok := new(big.Int).SetString(v.String(), 10)
		if ok {
			return new(big.Rat).SetInt(i)
		}
	}
	return nil
}
