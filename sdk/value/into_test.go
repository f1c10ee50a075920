package value_test

import (
	"encoding/json"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/value"
)

type everything struct {
	Base
	*Other
	Bool    bool            `json:"bool"`
	Int8    int8            `json:"int8"`
	Int     int             `json:"int"`
	Uint    uint64          `json:"uint"`
	Float   float64         `json:"float"`
	Float32 float32         `json:"float32"`
	Text    string          `json:"text"`
	Bytes   []byte          `json:"bytes"`
	Number  json.Number     `json:"number"`
	Raw     json.RawMessage `json:"raw"`
	Any     any             `json:"any"`
	Time    time.Time       `json:"time"`
	Addr    netip.Addr      `json:"addr"`
	Pointer *int            `json:"pointer"`
	List    []string        `json:"list"`
	Array   [2]int          `json:"array"`
	Nested  []Base          `json:"nested"`
	Map     map[string]Base `json:"map"`
	Keys    map[int]string  `json:"keys"`
	Quoted  int             `json:"quoted,string"`
	Hidden  string          `json:"-"`
	Default string          `json:"default"`
}

type Base struct {
	Name string `json:"name"`
}

type Other struct {
	Extra int `json:"extra"`
}

// What a value becomes is what encoding/json makes of its text.
func TestIntoAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{}`, `null`,
		`{"name":"n","extra":3,"bool":true,"int8":-128,"int":9007199254740993,"uint":18446744073709551615,"float":1e308,"float32":0.5,"text":"ü"}`,
		`{"bytes":"aGk=","number":123456789012345678901234567890,"raw":{"a":[1,null]},"any":null,"time":"2026-01-02T03:04:05Z","addr":"::1","pointer":0}`,
		`{"list":["a","b"],"array":[1],"nested":[{"name":"a"},{}],"map":{"k":{"name":"v"},"l":null},"keys":{"-1":"a","2":"b"},"quoted":"7"}`,
		`{"list":null,"map":null,"pointer":null,"bytes":null,"text":null,"int":null,"nested":null,"name":null,"default":null,"unknown":1}`,
		`{"NAME":"n","Text":"t","text":"u","INT":3}`,
		`{"array":[1,2,3],"list":[],"map":{},"any":"x"}`,
	} {
		v, err := value.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, want := everything{Default: "d"}, everything{Default: "d"}
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if err := value.Into(v, &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if d := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
	}
}

func TestIntoTakesWholeFloatsAndKeepsTheModel(t *testing.T) {
	t.Parallel()
	var got struct {
		I   int8           `json:"i"`
		U   uint           `json:"u"`
		Any map[string]any `json:"any"`
	}
	inner := object{"n": int64(9007199254740993), "long": json.Number("99999999999999999999"), "f": 2.0, "list": list{int64(1)}}
	if err := value.Into(object{"i": 2.0, "u": 1e3, "any": inner}, &got); err != nil || got.I != 2 || got.U != 1000 {
		t.Error(got, err)
	}
	if d := cmp.Diff(inner, got.Any); d != "" {
		t.Error(d)
	}
	got.Any["list"].(list)[0] = "changed"
	if inner["list"].(list)[0] != int64(1) {
		t.Error("the result shares a list with the value")
	}
}

func TestIntoRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"int8":128}`:                 "int8: 128 does not fit a Go int8",
		`{"int":1.5}`:                  "int: cannot store number in a Go int",
		`{"int":99999999999999999999}`: "int: 99999999999999999999 does not fit a Go int",
		`{"uint":-1}`:                  "uint: -1 does not fit a Go uint64",
		`{"float32":1e300}`:            "float32: 1e+300 does not fit a Go float32",
		`{"text":1}`:                   "text: cannot store integer in a Go string",
		`{"bool":"true"}`:              "bool: cannot store string in a Go bool",
		`{"nested":[{},{"name":[]}]}`:  "nested: [1]: name: cannot store array in a Go string",
		`{"map":{"k":1}}`:              "map: k: cannot store integer in a Go value_test.Base",
		`{"list":{}}`:                  "list: cannot store object in a Go []string",
		`{"keys":{"x":"a"}}`:           "keys: x: cannot store string in a Go int",
		`{"bytes":"*"}`:                "bytes: illegal base64 data",
		`{"time":"yesterday"}`:         "time: ",
		`[]`:                           "cannot store array in a Go value_test.everything",
	} {
		v, err := value.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := value.Into(v, new(everything)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, into := range []any{nil, everything{}, (*int)(nil)} {
		if value.Into(int64(1), into) == nil {
			t.Errorf("stores in %v", reflect.TypeOf(into))
		}
	}
	var f float64
	if err := value.Into(json.Number("1"+strings.Repeat("0", 400)), &f); err == nil || f == math.Inf(1) {
		t.Error("stores an infinity")
	}
}
