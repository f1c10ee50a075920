package jmespath

import (
	"github.com/the-edge-agent/tea/host/internal/python"
	"github.com/the-edge-agent/tea/sdk/value"
)

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
