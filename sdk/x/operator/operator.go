// Package operator compares values for the conditions of data.filter and of metadata filters.
// Start with [New]; [Names] returns the operators.
package operator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"
)

// Names returns the operators of a [Comparison].
func Names() []string {
	return []string{"eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "startswith", "endswith", "exists"}
}

// Comparison is an operator with its operand. It is immutable and safe for concurrent use.
type Comparison struct {
	op   string
	want any
}

// New checks an operator and its operand, which is shared and must not be changed.
func New(op string, want any) (Comparison, error) {
	wrong := ""
	switch op {
	case "in", "not_in":
		if _, ok := want.([]any); !ok {
			wrong = "a list"
		}
	case "startswith", "endswith":
		if _, ok := want.(string); !ok {
			wrong = "a string"
		}
	case "exists":
		if _, ok := want.(bool); !ok && want != nil {
			wrong = "true or false"
		}
	default:
		if !slices.Contains(Names(), op) {
			return Comparison{}, fmt.Errorf("unknown operator %q; use one of %s", op, strings.Join(Names(), ", "))
		}
	}
	if wrong != "" {
		return Comparison{}, fmt.Errorf("operator %s takes %s, not %s", op, wrong, value.TypeName(want))
	}
	return Comparison{op: op, want: want}, nil
}

// Negative reports whether the comparison is true for a missing value.
func (c Comparison) Negative() bool {
	return c.op == "ne" || c.op == "not_in" || (c.op == "exists" && c.want == false)
}

// Holds reports whether a value satisfies the comparison; found is false for a
// missing value. The operators gt, gte, lt and lte are true only between two
// numbers or two strings.
func (c Comparison) Holds(v any, found bool) bool {
	if !found {
		return c.Negative()
	}
	switch c.op {
	case "eq":
		return value.Equal(v, c.want)
	case "ne":
		return !value.Equal(v, c.want)
	case "in", "not_in":
		list, _ := c.want.([]any)
		return containsValue(list, v) == (c.op == "in")
	case "contains":
		return c.within(v)
	case "startswith", "endswith":
		text, ok := v.(string)
		affix, _ := c.want.(string)
		if c.op == "startswith" {
			return ok && strings.HasPrefix(text, affix)
		}
		return ok && strings.HasSuffix(text, affix)
	case "exists":
		return !c.Negative()
	}
	order, ok := value.Order(v, c.want)
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

// within reports whether the operand is part of a string, an item of a list or the name of a
// member.
func (c Comparison) within(v any) bool {
	switch v := v.(type) {
	case string:
		part, ok := c.want.(string)
		return ok && strings.Contains(v, part)
	case []any:
		return containsValue(v, c.want)
	case map[string]any:
		name, ok := c.want.(string)
		_, there := v[name]
		return ok && there
	}
	return false
}

func containsValue(list []any, v any) bool {
	return slices.ContainsFunc(list, func(e any) bool { return value.Equal(e, v) })
}
