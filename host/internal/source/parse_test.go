package source_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// parse reads a document that must be right.
func parse(t *testing.T, doc string) *source.Node {
	t.Helper()
	var diags diag.List
	n := source.Parse("f.yaml", []byte(doc), &diags)
	if len(diags) > 0 {
		t.Fatalf("unexpected diagnostics:\n%v", diags)
	}
	return n
}

func TestScalars(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want any
	}{
		{"~", nil},
		{"null", nil},
		{`"null"`, "null"},
		{"True", true},
		{"yes", "yes"},
		{"off", "off"},
		{"0", int64(0)},
		{"-12", int64(-12)},
		{"+12", int64(12)},
		{"017", int64(17)},
		{"0o17", int64(15)},
		{"0x1F", int64(31)},
		{"0b11", "0b11"},
		{"1_000", "1_000"},
		{"9223372036854775807", int64(9223372036854775807)},
		{"9223372036854775808", json.Number("9223372036854775808")},
		{"-9223372036854775809", json.Number("-9223372036854775809")},
		{"0xffffffffffffffffff", json.Number("4722366482869645213695")},
		{"3.0", 3.0},
		{".5", 0.5},
		{"5.", 5.0},
		{"1e3", 1000.0},
		{"-1.5E-3", -0.0015},
		{"1e", "1e"},
		{"1e+-3", "1e+-3"},
		{"1.2.3", "1.2.3"},
		{"+-1", "+-1"},
		{".", "."},
		{"-", []any{nil}},
		{"--", "--"},
		{"2024-01-01", "2024-01-01"},
		{"2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"},
		{"12:30:45", "12:30:45"},
		{"!!str 5", "5"},
		{"!!int '5'", int64(5)},
		{"!!float 5", 5.0},
		{`"a\/b \\/ \"\/"`, `a/b \/ "/`},
		{`'a\/b'`, `a\/b`},
		{`a\/b`, `a\/b`},
		{`['\', "\/", '\/']`, []any{`\`, "/", `\/`}},
		{"\"a\u2028b\u2029c\u0085d\"", "a\u2028b\u2029c\u0085d"},
		{"'a\u2028b'", "a\u2028b"},
		{"a\u2028b: c", map[string]any{"a\u2028b": "c"}},
		{"a\u0085", "a\u0085"},
		{"|\n  one\u2028two\n  three\u2029\n  \u0085four\n", "one\u2028two\nthree\u2029\n\u0085four\n"},
		{">\n  one\u2028two\n  three\n", "one\u2028two three\n"},
		{"\"\\L\\P\\N \ue000\u2028\"", "\u2028\u2029\u0085 \ue000\u2028"},
		{"=", "="},
		{`"a\tb"`, "a\tb"},
	}
	for _, test := range tests {
		if d := cmp.Diff(test.want, parse(t, test.text).Value()); d != "" {
			t.Errorf("%s (-want +got):\n%s", test.text, d)
		}
	}
}

func TestAliasesAndMergeKeys(t *testing.T) {
	t.Parallel()
	got := parse(t, `
base: &base {a: 1, b: 2}
other: &other {b: 3, c: 4}
alias: *base
merge: {z: 0, <<: *base, b: 9}
list: {<<: [*base, *other]}
quoted: {"<<": 1}
nested: {<<: {<<: *other, d: 5}}
on: yes
? &k key
: *k
`).Value()
	want := map[string]any{
		"base": map[string]any{"a": int64(1), "b": int64(2)}, "other": map[string]any{"b": int64(3), "c": int64(4)},
		"alias":  map[string]any{"a": int64(1), "b": int64(2)},
		"merge":  map[string]any{"z": int64(0), "a": int64(1), "b": int64(9)},
		"list":   map[string]any{"a": int64(1), "b": int64(2), "c": int64(4)},
		"quoted": map[string]any{"<<": int64(1)},
		"nested": map[string]any{"b": int64(3), "c": int64(4), "d": int64(5)},
		"on":     "yes",
		"key":    "key",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("differs (-want +got):\n%s", d)
	}
}

func TestByteOrderMarkOfUTF8(t *testing.T) {
	t.Parallel()
	got := parse(t, "\xef\xbb\xbfa: 1\nb: 2\n")
	if diff := cmp.Diff(any(map[string]any{"a": int64(1), "b": int64(2)}), got.Value()); diff != "" {
		t.Error(diff)
	}
	if pos := got.Get("a").Pos(""); pos.Line != 1 || pos.Column != 4 {
		t.Errorf("a is at %d:%d", pos.Line, pos.Column)
	}
}

func TestEscapesOfJSON(t *testing.T) {
	t.Parallel()
	got := parse(t, `{"a": "\ud83d\uDE00 \/ \\ud83d\\/ \ud800 \u00e9 \n",`+"\n"+`"b": 1}`)
	want := map[string]any{"a": "\U0001F600 / \\ud83d\\/ \uFFFD \u00e9 \n", "b": int64(1)}
	if diff := cmp.Diff(any(want), got.Value()); diff != "" {
		t.Error(diff)
	}
	if pos := got.Get("b").Pos(""); pos.Line != 2 {
		t.Errorf("b is at line %d, want 2", pos.Line)
	}
}

func TestTextPlaces(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, doc    string
		line, column int
		block        bool
	}{
		{"plain", "k: text", 1, 4, false},
		{"quoted", "k: 'text'", 1, 5, false},
		{"behind wide letters", "ключ: \"text\"", 1, 8, false},
		{"tag and anchor", "k: !!str &a \"text\"", 1, 14, false},
		{"anchored plain", "k: &a text", 1, 7, false},
		{"block", "k: |\n  text\n", 2, 3, true},
		{"anchored block", "k: &a |-  # note\n    text\n", 2, 5, true},
		{"block that begins with blank lines", "k: |\n\n\n   text\n", 2, 4, true},
		{"block with an indentation indicator", "k: |2\n    text\n", 2, 3, true},
		{"block of nothing", "k: |\n\n", 2, 1, true},
		{"folded", "k: >\n  text\n  more\n", 2, 3, false},
		{"Windows line ends", "a: 1\r\nk: |\r\n  text\r\n", 3, 3, true},
		{"next line", "k:\n  text", 2, 3, false},
	}
	for _, test := range tests {
		n := parse(t, test.doc).Get("k")
		if n == nil {
			n = parse(t, test.doc).Get("ключ")
		}
		if n.TextLine != test.line || n.TextColumn != test.column || n.Block != test.block {
			t.Errorf("%s: text at %d:%d, block %t; want %d:%d, %t", test.name, n.TextLine, n.TextColumn, n.Block, test.line, test.column, test.block)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, doc, want string }{
		{"empty", "", "f.yaml TEA1004 the file is empty"},
		{"comments", "# a\n", "f.yaml TEA1004 the file is empty"},
		{"empty document", "---\n", "f.yaml TEA1004 the file is empty"},
		{"behind a UTF-8 mark", "\xef\xbb\xbfa: @b\n", "f.yaml:1:4 TEA1006 a value cannot begin with this character"},
		{"UTF-16", "\xff\xfea\x00", "f.yaml:1:1 TEA1002 the file begins with a UTF-16 byte order mark"},
		{"UTF-32", "\xff\xfe\x00\x00", "f.yaml:1:1 TEA1002 the file begins with a UTF-32 byte order mark"},
		{"Latin-1", "a: 1\nb: \xe9", "f.yaml:2:4 TEA1002 the file is not UTF-8 here"},
		{"NUL", "é: \x00", "f.yaml:1:4 TEA1002 the file contains a NUL character"},
		{"control character", "a: \x07", "f.yaml:1:4 TEA1002 the file contains a control character that YAML does not allow"},
		{"two documents", "a: 1\n---\nb: 2\n", "f.yaml:2:1 TEA1005 a second YAML document begins here"},
		{"duplicate key", "a: 1\nb: {c: 1, \"c\": 2}\n", `f.yaml:2:11 TEA1009 duplicate key "c" (first defined at line 2, column 5)`},
		{"duplicate merge", "a: &a {x: 1}\nb: {<<: *a, <<: *a}", "f.yaml:2:13 TEA1009 duplicate key <<"},
		{"merge of a list", "a: &a [1]\nb: {<<: *a}", "f.yaml:2:9 TEA1012 a merge key needs a mapping, got an integer"},
		{"merge of text", "b: {<<: x}", "f.yaml:1:9 TEA1012 a merge key needs a mapping, got a string"},
		{"alias inside its anchor", "a: &a [1, *a]", "f.yaml:1:11 TEA1008 the alias *a is inside its own anchor"},
		{"unknown anchor", "a: 1\nb: *nobody\n", `f.yaml:2:4 TEA1008 unknown anchor "nobody"`},
		{"list as key", "? [a]\n: 1", "f.yaml:1:3 TEA1010 a list or a mapping cannot be a key"},
		{"template without quotes", "a: {{ x }}", "f.yaml:1:5 TEA1010 a list or a mapping cannot be a key"},
		{"not a number", "a: .NaN", "f.yaml:1:4 TEA1011 .NaN is not a number that JSON can represent"},
		{"too large", "a: 1e999", "f.yaml:1:4 TEA1011 1e999 does not fit a 64-bit float"},
		{"unknown tag", "a: !env HOME", "f.yaml:1:4 TEA1011 the tag !env is not supported"},
		{"unknown tag of a list", "a: !set [b]", "f.yaml:1:4 TEA1011 the tag !set is not supported"},
		{"tag that does not fit", "a: !!int x", `f.yaml:1:4 TEA1011 "x" does not fit its tag !!int`},

		{"tab", "a:\n\tb: 1\n", "f.yaml:2:1 TEA1006 a tab indents this line"},
		{"indentation", "a:\n  - name: b\n   run: c\n", `f.yaml:3:4 TEA1006 neither a "- " item nor the end of the list`},
		{"deeper key", "a: b\n c: d\n", `f.yaml:2:3 TEA1006 a ": " where no key is allowed`},
		{"two colons", "a: b: c\n", `f.yaml:1:5 TEA1006 a ": " where no key is allowed`},
		{"no colon", "a: 1\nb", `f.yaml:2:1 TEA1006 this line is neither "key: value" nor a "- " item`},
		{"open list", "a: [1, 2\nb: 3\n", "f.yaml:1:5 TEA1006 a list in [ ] is not closed or lacks a comma"},
		{"missing comma", "a: {b: \"x\" c: [1]}\n", "f.yaml:1:12 TEA1006 a mapping in { } is not closed or lacks a comma"},
		{"question mark", "a: 1\n\u00e9: {b: x, c: Go on?, d: 1}\n", "f.yaml:2:19 TEA1006 a mapping in { } is not closed or lacks a comma"},
		{"wrong bracket", "a: {b: [1, \"]\", 'it''s'}, c: 2}\n", "f.yaml:1:24 TEA1006 a list in [ ] is not closed or lacks a comma"},
		{"open quote", "a: 1\nb: \"x\nc: 2\n", "f.yaml:2:4 TEA1006 a quote that opens here is not closed"},
		{"text behind a quote", "a: 'b' c\n", "f.yaml:1:8 TEA1006 neither a key nor the end of the mapping"},
		{"at sign", "a: @b\n", "f.yaml:1:4 TEA1006 a value cannot begin with this character"},
		{"escape", `a: "\q"`, "f.yaml:1:5 TEA1006 unknown escape in double quotes"},
		{"escape behind tabs", "{\n\t\"a\": \"\\q\"}", "f.yaml:2:8 TEA1006 unknown escape in double quotes"},
		{"list behind a key", "a: - b\n", `f.yaml:1:4 TEA1006 a "- " item where no list can begin`},
		{"template in text", "a: {{ x }} y\n", "f.yaml:1:12 TEA1006 a template is not in quotes"},
		{"bare star", "a: *\n", "f.yaml:1:4 TEA1006 an anchor or alias has no name"},
		{"text behind a bar", "a: |x\n b\n", "f.yaml:1:5 TEA1006 text after the | or > of a block"},
		{"bracket too many", "a: 1\n]\n", "f.yaml:2:1 TEA1006 neither a key nor the end of the mapping"},
		{"less indented", "a:\n  b: 1\n c: 2\n", "f.yaml:3:2 TEA1006 neither a key nor the end of the mapping"},
		{"mistake in the second document", "a: 1\n---\nb: [\n", "f.yaml:3:4 TEA1006 a value is missing or cannot begin like this"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var diags diag.List
			source.Parse("f.yaml", []byte(test.doc), &diags)
			if len(diags) != 1 {
				t.Fatalf("got %d diagnostics, want 1: %v", len(diags), diags)
			}
			d := diags[0]
			if got := fmt.Sprintf("%s %s %s", d.Pos, d.Code, d.Message); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestHintWhereAQuestionMarkEndsText(t *testing.T) {
	t.Parallel()
	var diags diag.List
	source.Parse("f.yaml", []byte("a: {question: Go on?, choices: [1]}\n"), &diags)
	if len(diags) != 1 || !strings.Contains(diags[0].Hint, "text that contains a ? needs quotes") {
		t.Errorf("got %v", diags)
	}
}

// TestSyntaxErrorInALargeFile has no search for the place, but a line.
func TestSyntaxErrorInALargeFile(t *testing.T) {
	t.Parallel()
	var diags diag.List
	source.Parse("f.yaml", []byte(strings.Repeat("- a\n", 100_000)+"b: c\n"), &diags)
	if len(diags) != 1 || diags[0].Code != "TEA1006" || diags[0].Line == 0 {
		t.Errorf("got %v", diags)
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	got := diag.Key(diag.Index(diag.Key(diag.Key("", "nodes"), `a "b"`), 3), "x-1")
	if want := `nodes["a \"b\""][3].x-1`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A separator that YAML 1.1 takes for a line end cut a block of Lua, and moved
// the positions after it.
func TestPositionsAfterUnicodeSeparators(t *testing.T) {
	t.Parallel()
	root := parse(t, "a: \"x\u2028y\" # \u0085\nb: \"q\\/r\"\nc: |\n  local s = \"\u2028\"\n  return s\nd: 1\n")
	for key, line := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 6} {
		if got := root.Get(key).Line; got != line {
			t.Errorf("%s is on line %d, want %d", key, got, line)
		}
	}
	if got, want := root.Get("c").Text, "local s = \"\u2028\"\nreturn s\n"; got != want {
		t.Errorf("c is %q, want %q", got, want)
	}
	var diags diag.List
	source.Parse("f.yaml", []byte("a: \"\u2028\"\nb: !!binary aGVsbG8=\nc: [1\n"), &diags)
	if len(diags) != 1 || diags[0].Line < 3 {
		t.Errorf("the open list is reported as %v", diags)
	}
	diags = nil
	source.Parse("f.yaml", []byte("b: !!binary aGVsbG8=\n"), &diags)
	if len(diags) != 1 || !strings.Contains(diags[0].Message, "the tag !!binary is not supported") {
		t.Errorf("!!binary is reported as %v", diags)
	}
}
