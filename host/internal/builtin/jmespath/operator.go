package jmespath

import (
	"github.com/jmespath-community/go-jmespath/pkg/parsing"

	"github.com/the-edge-agent/tea/host/internal/python"
	"github.com/the-edge-agent/tea/sdk/value"
)

// operator evaluates an operator and its operands.
func (r *run) operator(n *parsing.ASTNode, v any) any {
	left := r.eval(&n.Children[0], v)
	switch n.NodeType {
	case parsing.ASTNotExpression:
		return isFalse(left)
	case parsing.ASTOrExpression:
		if !isFalse(left) {
			return left
		}
		return r.eval(&n.Children[1], v)
	case parsing.ASTAndExpression:
		if isFalse(left) {
			return left
		}
		return r.eval(&n.Children[1], v)
	case parsing.ASTArithmeticUnaryExpression:
		if !value.IsNumber(left) {
			return nil
		}
		if n.Value == parsing.TOKMinus {
			return arithmetic("-", int64(0), left)
		}
		return left
	case parsing.ASTComparator, parsing.ASTArithmeticExpression:
		right := r.eval(&n.Children[1], v)
		if n.NodeType == parsing.ASTComparator {
			return r.compare(n.Value, left, right)
		}
		return calculate(n.Value, left, right)
	}
	panic(failf("a %s cannot be evaluated here", n.NodeType))
}

// compare returns a boolean; null if the values have no order.
func (r *run) compare(operator, left, right any) any {
	switch operator {
	case parsing.TOKEQ:
		return r.equal(left, right)
	case parsing.TOKNE:
		return !r.equal(left, right)
	}
	if !value.IsNumber(left) || !value.IsNumber(right) {
		return nil
	}
	order, _ := value.Compare(left, right)
	switch operator {
	case parsing.TOKLT:
		return order < 0
	case parsing.TOKLTE:
		return order <= 0
	case parsing.TOKGT:
		return order > 0
	default:
		return order >= 0
	}
}

// equal is [value.Equal] and counts its steps.
func (r *run) equal(a, b any) bool {
	r.spend(1)
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !r.equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k := range a {
			if other, ok := b[k]; !ok || !r.equal(a[k], other) {
				return false
			}
		}
		return true
	}
	return value.Equal(a, b)
}

func calculate(operator, left, right any) any {
	if !value.IsNumber(left) || !value.IsNumber(right) {
		return nil
	}
	op := map[any]string{
		parsing.TOKPlus: "+", parsing.TOKMinus: "-", parsing.TOKStar: "*", parsing.TOKMultiply: "*",
		parsing.TOKDivide: "/", parsing.TOKDiv: "//", parsing.TOKModulo: "%",
	}[operator]
	return arithmetic(op, left, right)
}

// isFalse reports whether v is false in JMESPath: null, false, or empty. The
// number 0 is true.
func isFalse(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// arithmetic calculates as Python does, except that / returns an integer if the
// result is one, and the result of % has the sign of a.
func arithmetic(op string, a, b any) any {
	switch op {
	case "/":
		whole := must(python.Calculate("//", a, b))
		if product, err := python.Calculate("*", whole, b); err == nil && value.Equal(product, a) {
			return whole
		}
	case "%":
		rest := must(python.Calculate("%", a, b))
		if sign(rest) == 0 || sign(rest) == sign(a) {
			return rest
		}
		op, a = "-", rest
	}
	return must(python.Calculate(op, a, b))
}

func sign(v any) int {
	order, _ := value.Compare(v, int64(0))
	return order
}

func abs(_ *run, args []any) any {
	if sign(args[0]) < 0 {
		return python.Negate(args[0])
	}
	return args[0]
}

func rounded(v any, round func(float64) float64) any {
	if f, ok := v.(float64); ok {
		whole, _ := value.Integer(round(f))
		return whole
	}
	return v
}

func sum(_ *run, args []any) any {
	var total any = int64(0)
	for _, e := range args[0].([]any) {
		total = arithmetic("+", total, e)
	}
	return total
}

func avg(r *run, args []any) any {
	list := args[0].([]any)
	if len(list) == 0 {
		return nil
	}
	return arithmetic("/", sum(r, args), int64(len(list)))
}

// toNumber parses a string as a JSON number: "0x10" and "inf" are not numbers.
func toNumber(_ *run, args []any) any {
	s, ok := args[0].(string)
	if !ok {
		if value.IsNumber(args[0]) {
			return args[0]
		}
		return nil
	}
	v, err := value.Decode([]byte(s))
	if err != nil || !value.IsNumber(v) {
		return nil
	}
	return v
}
