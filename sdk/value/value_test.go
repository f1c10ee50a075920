package value_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/value"
)

type (
	list   = []any
	object = map[string]any
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		want any
		back string // "" = text
	}{
		{`null`, nil, ""},
		{`true`, true, ""},
		{`0`, int64(0), ""},
		{`-0`, int64(0), "0"},
		{`9223372036854775807`, int64(math.MaxInt64), ""},
		{`-9223372036854775808`, int64(math.MinInt64), ""},
		{`9223372036854775808`, json.Number("9223372036854775808"), ""},
		{`123456789012345678901234567890`, json.Number("123456789012345678901234567890"), ""},
		{`3.0`, 3.0, ""},
		{`3.50`, 3.5, "3.5"},
		{`-0.0`, math.Copysign(0, -1), ""},
		{`1e3`, 1000.0, "1000.0"},
		{`1e16`, 1e16, "1e+16"},
		{`1e21`, 1e21, "1e+21"},
		{`5e-324`, 5e-324, ""},
		{`1.7976931348623157e308`, math.MaxFloat64, "1.7976931348623157e+308"},
		{`"aA\u00e9\u2028<&>\ud83d\ude00\u0000\n\t\"\\/"`, "aAé\u2028<&>😀\x00\n\t\"\\/", `"aAé\u2028<&>😀\u0000\n\t\"\\/"`},
		{`"\ud800"`, "\ufffd", `"` + "\ufffd" + `"`},
		{` [1, [], {}] `, list{int64(1), list{}, object{}}, `[1,[],{}]`},
		{`{"b":1,"a":{"z":null}}`, object{"b": int64(1), "a": object{"z": nil}}, `{"a":{"z":null},"b":1}`},
		{`{"a":1,"a":2}`, object{"a": int64(2)}, `{"a":2}`},
	} {
		t.Run(test.text[:min(len(test.text), 40)], func(t *testing.T) {
			t.Parallel()
			got, err := value.Decode([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("decoded (-want +got):\n%s", d)
			}
			want := test.back
			if want == "" {
				want = test.text
			}
			raw, err := value.Encode(got)
			if err != nil || string(raw) != want {
				t.Errorf("encoded to %s, %v", raw, err)
			}
			again, err := value.Decode(raw)
			if err != nil || !cmp.Equal(got, again) {
				t.Errorf("the second round gives %v, %v", again, err)
			}
		})
	}
}

func TestDeepNesting(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	v, err := value.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := value.Encode(v)
	if err != nil || string(raw) != text || !value.Equal(v, value.Clone(v)) {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}

func TestInvalidUTF8IsReplaced(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a\xffb", "\xe2\x82", "\xff\xfe", "ok"} {
		got, err := value.Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := json.Marshal(text)
		var a, b string
		if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil || a != b {
			t.Errorf("%q is %q, encoding/json makes it %q", text, a, b)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", `{"a":}`, "[1,]", "1 2", "nul", "01", "1e999", strings.Repeat("[", 20_000)} {
		if v, err := value.Decode([]byte(text)); err == nil {
			t.Errorf("%.20q gives %v", text, v)
		}
	}
	_, err := value.Decode([]byte(`{"a": x}`))
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset != 7 {
		t.Errorf("err = %v", err)
	}
}

func TestEncodeErrors(t *testing.T) {
	t.Parallel()
	for _, v := range []any{math.NaN(), math.Inf(1), struct{}{}, list{uint8(1)}, object{"a": make(chan int)}, json.Number("x"), json.Number(""), json.Number("1 "), json.Number(`"1"`)} {
		if raw, err := value.Encode(v); err == nil {
			t.Errorf("%v gives %s", v, raw)
		}
	}
}

func TestFrom(t *testing.T) {
	t.Parallel()
	type named struct {
		A int     `json:"a"`
		B []uint8 `json:"b,omitempty"`
	}
	for _, test := range []struct{ in, want any }{
		{nil, nil},
		{3, int64(3)},
		{uint64(math.MaxUint64), json.Number("18446744073709551615")},
		{float32(0.5), 0.5},
		{json.Number("7"), int64(7)},
		{json.Number("7.0"), 7.0},
		{json.RawMessage(`{"x":1.0}`), object{"x": 1.0}},
		{named{A: 1}, object{"a": int64(1)}},
		{&named{A: 1, B: []byte("hi")}, object{"a": int64(1), "b": "aGk="}},
		{[]string{"a"}, list{"a"}},
		{map[string]int{"a": 1}, object{"a": int64(1)}},
		{list{1, object{"t": time.Unix(0, 0).UTC()}}, list{int64(1), object{"t": "1970-01-01T00:00:00Z"}}},
	} {
		got, err := value.From(test.in)
		if err != nil {
			t.Errorf("%v: %v", test.in, err)
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%v (-want +got):\n%s", test.in, d)
		}
	}
	for _, bad := range []any{math.NaN(), list{math.Inf(-1)}, object{"f": func() {}}} {
		if v, err := value.From(bad); err == nil {
			t.Errorf("%v gives %v", bad, v)
		}
	}
}

func TestCopiesShareNothing(t *testing.T) {
	t.Parallel()
	original := object{"list": list{object{"a": int64(1)}}}
	from, err := value.From(original)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]any{"Clone": value.Clone(original), "From": from} {
		c.(object)["list"].(list)[0].(object)["a"] = int64(2)
		if d := cmp.Diff(object{"list": list{object{"a": int64(1)}}}, original); d != "" {
			t.Errorf("%s: the original changed:\n%s", name, d)
		}
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	const beyond = 1<<53 + 1
	for _, test := range []struct {
		a, b any
		want bool
	}{
		{nil, nil, true},
		{nil, false, false},
		{int64(3), 3.0, true},
		{int64(3), 3.5, false},
		{int64(beyond), float64(1 << 53), false},
		{int64(1 << 53), float64(1 << 53), true},
		{int64(math.MaxInt64), 9223372036854775808.0, false},
		{json.Number("9223372036854775808"), 9223372036854775808.0, true},
		{json.Number("9223372036854775809"), 9223372036854775808.0, false},
		{json.Number("3"), int64(3), true},
		{json.Number("9223372036854775808"), json.Number("9223372036854775808"), true},
		{int64(1), math.Inf(1), false},
		{int64(0), math.NaN(), false},
		{int64(0), math.Copysign(0, -1), true},
		{int64(1), "1", false},
		{int64(1), true, false},
		{int64(1), list{}, false},
		{"a", "a", true},
		{list{int64(1), object{"a": 2.0}}, list{1.0, object{"a": int64(2)}}, true},
		{list{int64(1)}, list{int64(1), nil}, false},
		{object{"a": nil}, object{"b": nil}, false},
		{object{"a": nil}, object{}, false},
		{object{}, list{}, false},
		{"a", list{"a"}, false},
	} {
		if got := value.Equal(test.a, test.b); got != test.want {
			t.Errorf("%v and %v: %v", test.a, test.b, got)
		}
		if got := value.Equal(test.b, test.a); got != test.want {
			t.Errorf("%v and %v: %v", test.b, test.a, got)
		}
	}
}

func TestTruthyAndTypeName(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		v      any
		truthy bool
		name   string
	}{
		{nil, false, "null"},
		{false, false, "boolean"},
		{true, true, "boolean"},
		{int64(0), false, "integer"},
		{int64(-1), true, "integer"},
		{json.Number("99999999999999999999"), true, "integer"},
		{0.0, false, "number"},
		{0.1, true, "number"},
		{"", false, "string"},
		{"0", true, "string"},
		{list{}, false, "array"},
		{list{nil}, true, "array"},
		{object{}, false, "object"},
		{object{"a": nil}, true, "object"},
	} {
		if value.Truthy(test.v) != test.truthy || value.TypeName(test.v) != test.name {
			t.Errorf("%v: %v, %s", test.v, value.Truthy(test.v), value.TypeName(test.v))
		}
	}
}

// FuzzDecode compares with encoding/json, and looks for values that a round
// trip changes.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.0,1e5,"\u00e9"]}`, `-0`, `1e400`, `"\ud800"`, `[[[]]]`, "\"\xff\"", `{"a":1,"a":2}`, `18446744073709551616`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := value.Decode(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepts %q", data)
		}
		raw, err := value.Encode(v)
		if err != nil || !json.Valid(raw) {
			t.Fatalf("%q is encoded as %q, %v", data, raw, err)
		}
		again, err := value.Decode(raw)
		if err != nil || !value.Equal(v, again) {
			t.Fatalf("%q becomes %q: %v", data, raw, err)
		}
	})
}
