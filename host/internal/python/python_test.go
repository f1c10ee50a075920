package python_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/python"
)

func TestCalculate(t *testing.T) {
	t.Parallel()
	long := json.Number("9223372036854775808")
	for _, test := range []struct {
		op   string
		a, b any
		want any
	}{
		{"+", int64(1), true, int64(2)},
		{"+", int64(9223372036854775807), int64(1), long},
		{"-", long, int64(1), int64(9223372036854775807)},
		{"*", int64(3), 0.5, 1.5},
		{"/", int64(4), int64(2), 2.0},
		{"//", int64(-7), int64(2), int64(-4)},
		{"%", int64(-7), int64(2), int64(1)},
		{"//", -7.0, int64(2), -4.0},
		{"%", 7.5, int64(-2), -0.5},
		{"**", int64(2), int64(63), long},
		{"**", int64(2), int64(-1), 0.5},
		{"**", int64(-1), long, int64(1)},
	} {
		got, err := python.Calculate(test.op, test.a, test.b)
		if d := cmp.Diff(test.want, got); err != nil || d != "" {
			t.Errorf("%v %s %v: %v\n%s", test.a, test.op, test.b, err, d)
		}
	}
	for _, op := range []string{"/", "//", "%"} {
		if _, err := python.Calculate(op, int64(1), int64(0)); !errors.Is(err, python.ErrDivision) {
			t.Errorf("1 %s 0: %v", op, err)
		}
	}
	if _, err := python.Calculate("*", 1e300, 1e300); !errors.Is(err, python.ErrNotFinite) {
		t.Errorf("1e300 * 1e300: %v", err)
	}
	if _, err := python.Calculate("**", int64(10), int64(5000)); err == nil {
		t.Error("10 ** 5000 has a result")
	}
}

func TestIndices(t *testing.T) {
	t.Parallel()
	at := func(i int) *int { return &i }
	for _, test := range []struct {
		start, stop *int
		step        int
		want        []int
	}{
		{nil, nil, 1, []int{0, 1, 2, 3, 4}},
		{at(-2), nil, 1, []int{3, 4}},
		{at(-9), at(99), 2, []int{0, 2, 4}},
		{nil, nil, -2, []int{4, 2, 0}},
		{at(3), at(0), -1, []int{3, 2, 1}},
		{at(1), nil, int(^uint(0) >> 1), []int{1}},
		{at(4), at(1), 1, nil},
	} {
		if d := cmp.Diff(test.want, slices.Collect(python.Indices(5, test.start, test.stop, test.step))); d != "" {
			t.Error(d)
		}
	}
}
