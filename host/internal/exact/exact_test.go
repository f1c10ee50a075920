package exact_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/the-edge-agent/tea/host/internal/exact"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	const long = json.Number("123456789012345678901234567890")
	for _, test := range []struct {
		a, b  any
		order int
		ok    bool
	}{
		{int64(1), int64(2), -1, true},
		{int64(3), 3.0, 0, true},
		{int64(9007199254740993), 9007199254740992.0, 1, true},
		{0.1, int64(0), 1, true},
		{long, int64(math.MaxInt64), 1, true},
		{long, 1e300, -1, true},
		{long, long, 0, true},
		{int64(1), "1", 0, false},
		{nil, int64(1), 0, false},
		{math.NaN(), int64(1), 0, false},
		{json.Number("x"), int64(1), 0, false},
	} {
		if order, ok := exact.Compare(test.a, test.b); order != test.order || ok != test.ok {
			t.Errorf("Compare(%v, %v) = %d, %v; want %d, %v", test.a, test.b, order, ok, test.order, test.ok)
		}
	}
}

func TestIsInteger(t *testing.T) {
	t.Parallel()
	for v, want := range map[any]bool{int64(1): true, 3.0: true, 3.5: false, json.Number("99999999999999999999"): true, "1": false, true: false, math.Inf(1): false} {
		if got := exact.IsInteger(v); got != want {
			t.Errorf("IsInteger(%v) = %v", v, got)
		}
	}
}
