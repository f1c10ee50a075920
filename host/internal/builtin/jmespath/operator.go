package jmespath

import (
	"fmt"

	"github.com/jmespath-community/go-jmespath/pkg/parsing"

	"github.com/the-edge-agent/tea/host/internal/python"
	"github.com/the-edge-agent/tea/sdk/value"
)

// operator evaluates an operator and its operands.
func (r *run) operator(n *parsing.ASTNode, v any) (any, error) {
	left, err := r.eval(&n.Children[0], v)
	if err != nil {
		return nil, err
	}
	switch n.NodeType {
	case parsing.ASTNotExpression:
		return isFalse(left), nil
	case parsing.ASTOrExpression:
		if !isFalse(left) {
			return left, nil
		}
		return r.eval(&n.Children[1], v)
	case parsing.ASTAndExpression:
		if isFalse(left) {
			return left, nil
		}
		return r.eval(&n.Children[1], v)
	case parsing.ASTArithmeticUnaryExpression:
		if !value.IsNumber(left) {
			return nil, nil
		}
		if n.Value == parsing.TOKMinus {
			return arithmetic("-", int64(0), left)
		}
		return left, nil
	case parsing.ASTComparator, parsing.ASTArithmeticExpression:
		right, err := r.eval(&n.Children[1], v)
		if err != nil {
			return nil, err
		}
		if n.NodeType == parsing.ASTComparator {
			return r.compare(n.Value, left, right)
		}
		return calculate(n.Value, left, right)
	}
	return nil, fmt.Errorf("a %s cannot be evaluated here", n.NodeType)
}

// compare returns a boolean; null for an order of values that have none.
func (r *run) compare(operator, left, right any) (any, error) {
	switch operator {
	case parsing.TOKEQ:
		return r.equal(left, right)
	case parsing.TOKNE:
		same, err := r.equal(left, right)
		return !same, err
	}
	if !value.IsNumber(left) || !value.IsNumber(right) {
		return nil, nil
	}
	order, _ := value.Compare(left, right)
	switch operator {
	case parsing.TOKLT:
		return order < 0, nil
	case parsing.TOKLTE:
		return order <= 0, nil
	case parsing.TOKGT:
		return order > 0, nil
	default:
		return order >= 0, nil
	}
}

// equal is [value.Equal] that counts its steps.
func (r *run) equal(a, b any) (bool, error) {
	if err := r.spend(1); err != nil {
		return false, err
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		for i := range a {
			if same, err := r.equal(a[i], b[i]); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		for k := range a {
			other, ok := b[k]
			if !ok {
				return false, nil
			}
			if same, err := r.equal(a[k], other); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	return value.Equal(a, b), nil
}

func calculate(operator, left, right any) (any, error) {
	if !value.IsNumber(left) || !value.IsNumber(right) {
		return nil, nil
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

// arithmetic calculates as Python does, except that the result of / is an
// integer if it is one, and that of % has the sign of a.
func arithmetic(op string, a, b any) (any, error) {
	switch op {
	case "/":
		whole, err := python.Calculate("//", a, b)
		if err != nil {
			return nil, err
		}
		if product, err := python.Calculate("*", whole, b); err == nil && value.Equal(product, a) {
			return whole, nil
		}
	case "%":
		rest, err := python.Calculate("%", a, b)
		if err == nil && sign(rest) != 0 && sign(rest) != sign(a) {
			return python.Calculate("-", rest, b)
		}
		return rest, err
	}
	return python.Calculate(op, a, b)
}

func sign(v any) int {
	order, _ := value.Compare(v, int64(0))
	return order
}
