package jmespath

import (
	"github.com/the-edge-agent/tea/host/internal/python"
	"github.com/the-edge-agent/tea/sdk/value"
)

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
