package jmespath

import (
	"math"

	"github.com/the-edge-agent/tea/host/internal/python"
	"github.com/the-edge-agent/tea/sdk/value"
)

func abs(_ *run, args []any) (any, error) {
	if sign(args[0]) < 0 {
		return python.Negate(args[0]), nil
	}
	return args[0], nil
}

func ceil(_ *run, args []any) (any, error) { return rounded(args[0], math.Ceil) }

func floor(_ *run, args []any) (any, error) { return rounded(args[0], math.Floor) }

func rounded(v any, round func(float64) float64) (any, error) {
	if f, ok := v.(float64); ok {
		whole, _ := value.Integer(round(f))
		return whole, nil
	}
	return v, nil
}

func sum(_ *run, args []any) (any, error) {
	var total any = int64(0)
	for _, e := range args[0].([]any) {
		var err error
		if total, err = arithmetic("+", total, e); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func avg(r *run, args []any) (any, error) {
	list := args[0].([]any)
	if len(list) == 0 {
		return nil, nil
	}
	total, err := sum(r, args)
	if err != nil {
		return nil, err
	}
	return arithmetic("/", total, int64(len(list)))
}

// toNumber parses a string as a JSON number: "0x10" and "inf" are not numbers.
func toNumber(_ *run, args []any) (any, error) {
	s, ok := args[0].(string)
	if !ok {
		if value.IsNumber(args[0]) {
			return args[0], nil
		}
		return nil, nil
	}
	v, err := value.Decode([]byte(s))
	if err != nil || !value.IsNumber(v) {
		return nil, nil
	}
	return v, nil
}
