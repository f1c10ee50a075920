package expr_test

import (
	"encoding/json"
	"math"
	"testing"
)

// Exactly one of <, == and > holds between two numbers, whatever their types.
func TestNumbersHaveOneOrder(t *testing.T) {
	t.Parallel()
	numbers := list{ // in ascending order, those in one list equal
		list{-1e308},
		list{json.Number("-9223372036854775809")},
		list{int64(math.MinInt64), -9223372036854775808.0},
		list{int64(-1), -1.0},
		list{int64(0), 0.0, math.Copysign(0, -1), false},
		list{0.5},
		list{int64(1), 1.0, true},
		list{int64(9007199254740992), 9007199254740992.0, json.Number("9007199254740992")},
		list{int64(9007199254740993)},
		list{int64(math.MaxInt64)},
		list{9223372036854775808.0, json.Number("9223372036854775808")},
		list{json.Number("9223372036854775809")},
		list{1e308},
	}
	type ranked struct {
		v    any
		rank int
	}
	var all []ranked
	for rank, equal := range numbers {
		for _, v := range equal.(list) {
			all = append(all, ranked{v, rank})
		}
	}
	for _, a := range all {
		for _, b := range all {
			scope := roots{"a": a.v, "b": b.v}
			want := list{a.rank < b.rank, a.rank <= b.rank, a.rank == b.rank, a.rank != b.rank, a.rank >= b.rank, a.rank > b.rank, a.rank == b.rank}
			text := `{{ [a < b, a <= b, a == b, a != b, a >= b, a > b, a in [b]] }}`
			diff(t, text, want, mustEval(t, text, scope))
			if a.rank < b.rank {
				diff(t, "min", list{a.v, b.v, list{a.v, b.v}, int64(2)}, mustEval(t, `{{ [[b, a] | min, [a, b] | max, [b, a] | sort, [a, b] | unique | list | length] }}`, scope))
			}
		}
	}
}
