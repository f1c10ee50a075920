package value_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/the-edge-agent/tea/sdk/value"
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
		{int64(3), 3.5, -1, true},
		{int64(-3), -3.5, 1, true},
		{int64(9007199254740993), 9007199254740992.0, 1, true},
		{int64(-9007199254740993), -9007199254740992.0, -1, true},
		{int64(math.MaxInt64), 9223372036854775808.0, -1, true},
		{int64(math.MinInt64), -9223372036854775808.0, 0, true},
		{int64(0), math.Copysign(0, -1), 0, true},
		{0.1, int64(0), 1, true},
		{int64(1), 1e308, -1, true},
		{1e308, math.Inf(1), -1, true},
		{int64(math.MinInt64), math.Inf(-1), 1, true},
		{long, int64(math.MaxInt64), 1, true},
		{long, 1e300, -1, true},
		{long, 123456789012345678901234567890.0, 1, true},
		{long, long, 0, true},
		{int64(1), "1", 0, false},
		{nil, int64(1), 0, false},
		{true, int64(1), 0, false},
		{math.NaN(), int64(1), 0, false},
		{math.NaN(), math.NaN(), 0, false},
		{long, math.NaN(), 0, false},
		{json.Number("x"), int64(1), 0, false},
	} {
		if order, ok := value.Compare(test.a, test.b); order != test.order && test.ok || ok != test.ok {
			t.Errorf("Compare(%v, %v) = %d, %v; want %d, %v", test.a, test.b, order, ok, test.order, test.ok)
		}
		if order, ok := value.Compare(test.b, test.a); order != -test.order && test.ok || ok != test.ok {
			t.Errorf("Compare(%v, %v) = %d, %v; want %d, %v", test.b, test.a, order, ok, -test.order, test.ok)
		}
		if test.ok && value.Equal(test.a, test.b) != (test.order == 0) {
			t.Errorf("Equal(%v, %v) disagrees with Compare", test.a, test.b)
		}
		if test.ok && (value.Key(test.a) == value.Key(test.b)) != (test.order == 0) {
			t.Errorf("the keys %s and %s disagree with Compare", value.Key(test.a), value.Key(test.b))
		}
	}
}

func TestInteger(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		v    any
		want any // nil where v is not an integer
	}{
		{int64(1), int64(1)},
		{3.0, int64(3)},
		{3.5, nil},
		{math.Copysign(0, -1), int64(0)},
		{9223372036854775808.0, json.Number("9223372036854775808")},
		{-9223372036854775808.0, int64(math.MinInt64)},
		{1e20, json.Number("100000000000000000000")},
		{json.Number("99999999999999999999"), json.Number("99999999999999999999")},
		{"1", nil},
		{true, nil},
		{math.Inf(1), nil},
		{math.NaN(), nil},
	} {
		got, ok := value.Integer(test.v)
		if ok != (test.want != nil) || ok && got != test.want || value.IsInteger(test.v) != ok {
			t.Errorf("Integer(%v) = %v, %v", test.v, got, ok)
		}
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	v, err := value.Decode([]byte(`{"a": [7.0, -0.5, 9007199254740991.0, 9007199254740992.0, 1e300], "b": {"c": 2.0, "d": "3.0"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": []any{int64(7), -0.5, int64(1<<53 - 1), float64(1 << 53), 1e300}, "b": map[string]any{"c": int64(2), "d": "3.0"}}
	if got := value.Whole(v); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
