package value

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// texts are what parse and encoding/json must agree on. The second list is
// left to encoding/json.
var (
	parsed = []string{
		`null`, ` true `, `false`, `""`, `"a\"\\\/\b\f\n\r\tz"`, `"\u00e9é\u4e2d\ud83d\ude00\u0000"`, `"\uD83D\uDE00"`,
		`0`, `-0`, `-0.0`, `12`, `-12`, `1.5`, `-1.5e3`, `1E+2`, `1e-400`, `999999999999999999`, `9223372036854775807`, `-9223372036854775808`, `9223372036854775808`,
		`[]`, `[ ]`, `{}`, `{ }`, `[[],{}]`, "\t[1 ,\r\n2 , {\"a\" : [ ] } ]\n", `{"a":1,"a":[2]}`, `{"":{"":""}}`,
	}
	left = []string{
		``, ` `, `nul`, `truex`, `"`, `"a`, `"\`, `"\u12`, `"\x"`, `"\ud83d"`, `"\ud83d\u0041"`, `"\ud83dx"`, "\"\x01\"", "\"\xff\"", "\"\\n\x01\"", "\"\\n\xff\"",
		`-`, `01`, `1.`, `.5`, `1e`, `1e+`, `+1`, `1e400`, `0x1`, `1_0`, `[`, `[1`, `[1,`, `[1,]`, `[,1]`, `[1 2]`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{a:1}`, `{1:2}`, `[}`, `{]`,
		`1 2`, `{} x`, strings.Repeat("[", 1001) + strings.Repeat("]", 1001), `"\u+123"`,
	}
)

func agree(t *testing.T, text string) (ok bool) {
	t.Helper()
	got, ok := parse([]byte(text))
	if !ok {
		return false
	}
	want, err := decode([]byte(text))
	if err != nil {
		t.Fatalf("%q is taken, but %v", text, err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })); diff != "" {
		t.Fatalf("%q: %s", text, diff)
	}
	return true
}

func TestParseAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, text := range parsed {
		if !agree(t, text) {
			t.Errorf("%q is left to encoding/json", text)
		}
	}
	for _, text := range left {
		if agree(t, text) {
			t.Errorf("%q is taken", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range append(parsed, left...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { agree(t, text) })
}

func BenchmarkDecode(b *testing.B) {
	text := []byte("[" + strings.Repeat(`{"id":12,"name":"sensor-7","value":20.25,"ok":true,"tags":["a","b"]},`, 12000) + "0]")
	for name, read := range map[string]func([]byte) (any, error){"parse": Decode, "encoding": decode} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
