package value_test

import (
	"encoding/json"
	"math"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/value"
)

func TestWholeFloatsStayFloats(t *testing.T) {
	t.Parallel()
	type point struct {
		X float64  `json:"x"`
		Y *float32 `json:"y"`
		N int      `json:"n"`
		A any      `json:"a"`
	}
	y := float32(2)
	for _, test := range []struct {
		name     string
		in, want any
	}{
		{"struct", point{X: 1, Y: &y, N: 3, A: []any{4.0, 4}}, map[string]any{"x": 1.0, "y": 2.0, "n": int64(3), "a": []any{4.0, int64(4)}}},
		{"list", []float64{1, 2.5}, []any{1.0, 2.5}},
		{"map of structs", map[string]point{"p": {X: 1}}, map[string]any{"p": map[string]any{"x": 1.0, "y": nil, "n": int64(0), "a": nil}}},
		{"map in a map", map[string]any{"m": map[string]float64{"f": 1}}, map[string]any{"m": map[string]any{"f": 1.0}}},
		{"short digits of a float32", float32(0.1), 0.1},
		{"named float", time.Duration(1).Seconds(), 1e-9},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := value.From(test.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type hidden struct {
	Shown  string
	Shared string
}

type Deep struct {
	Shared string
	Depth  int `json:"depth"`
}

type Left struct{ Twice, OnlyLeft int }

type Right struct{ Twice, OnlyRight int }

type byPointer struct{ n int }

func (p *byPointer) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]int{"n": p.n}) }

type text string

func (t text) MarshalText() ([]byte, error) { return []byte("<" + t + ">"), nil }

type tree struct {
	Name     string  `json:"name"`
	Children []*tree `json:"children,omitempty"`
}

type tags struct {
	Renamed   int                `json:"other"`
	Dash      int                `json:"-"`
	Empty     string             `json:"empty,omitempty"`
	EmptyMap  map[string]int     `json:"empty_map,omitempty"`
	EmptyPtr  *int               `json:"empty_ptr,omitempty"`
	ZeroTime  time.Time          `json:"zero_time,omitzero"`
	FullTime  time.Time          `json:"full_time,omitempty"`
	Quoted    int                `json:"quoted,string"`
	QuotedStr string             `json:"quoted_str,string"`
	QuotedNil *bool              `json:"quoted_nil,string"`
	Bytes     []byte             `json:"bytes"`
	Array     [2]byte            `json:"array"`
	Raw       json.RawMessage    `json:"raw"`
	Number    json.Number        `json:"number"`
	Texts     map[text]text      `json:"texts"`
	IntKeys   map[int8]bool      `json:"int_keys"`
	UintKeys  map[uint]bool      `json:"uint_keys"`
	AddrKeys  map[netip.Addr]int `json:"addr_keys"`
	Pointer   *byPointer         `json:"pointer"`
	Value     byPointer          `json:"value"`
	Values    []byPointer        `json:"values"`
	NilSlice  []string           `json:"nil_slice"`
	NilMap    map[string]string  `json:"nil_map"`
	Func      func()             `json:"-"`
	private   int
	hidden
	*Deep
	Left
	Right
	Tagged Left `json:"left"`
}

// From returns what encoding/json would write, except for whole floats.
func TestFromAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	full := tags{
		Renamed: 1, Dash: 2, Quoted: 5, QuotedStr: `a"b`, Bytes: []byte("hi"), Array: [2]byte{1, 2},
		Raw: json.RawMessage(`{"a":[1,2]}`), Number: "12", Texts: map[text]text{"k": "v"}, IntKeys: map[int8]bool{-1: true},
		UintKeys: map[uint]bool{7: true}, AddrKeys: map[netip.Addr]int{netip.MustParseAddr("::1"): 1}, Pointer: &byPointer{1},
		Value: byPointer{2}, Values: []byPointer{{3}}, private: 1, hidden: hidden{"s", "outer"}, Deep: &Deep{"inner", 2}, Left: Left{1, 2}, Right: Right{3, 4},
		FullTime: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	}
	var nilText *text
	for _, in := range []any{
		full, &full,
		tags{},
		[]tags{full},
		map[string]*tags{"a": &full, "b": nil},
		tree{Name: "a", Children: []*tree{{Name: "b"}, nil}},
		uint64(math.MaxUint64), uint8(3), int8(-3), "a\xff\xfeb", text("x"), nilText,
		[]text{"a"},
		time.Second, big.NewInt(5),
		struct{}{},
		[0]int{},
		[]any{uint16(1), []string{"a"}, struct{ A any }{map[int]string{1: "x"}}},
		map[string]any{"u": uint64(math.MaxUint64)},
		struct{ A *int }{},
		struct{ *Deep }{},
		struct{ Deep }{Deep{"s", 1}},
		[]json.Marshaler{nil},
		&[]int{1},
		struct {
			Left  `json:"named"`
			Right `json:",omitempty"`
		}{},
	} {
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		want, err := value.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		got, err := value.From(in)
		if err != nil {
			t.Errorf("%T: %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-encoding/json +From):\n%s", in, diff)
		}
	}
}

func TestValuesWithoutJSONFormAreErrors(t *testing.T) {
	t.Parallel()
	loop := &tree{Name: "loop"}
	loop.Children = []*tree{loop}
	self := map[string]any{}
	self["self"] = []any{struct{ A any }{self}}
	for _, in := range []any{
		self, make(chan int), func() {}, complex(1, 1),
		map[float64]int{1: 1},
		struct{ F func() }{},
		[]float64{math.NaN()},
		float32(math.Inf(1)),
		struct{ N json.Number }{"nope"},
		loop,
		struct{ J json.RawMessage }{json.RawMessage("{")},
	} {
		if got, err := value.From(in); err == nil {
			t.Errorf("%T became %v", in, got)
		}
	}
}
