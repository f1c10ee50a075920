package jmespath_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/builtin/jmespath"
	"github.com/the-edge-agent/tea/sdk/value"
)

// group is a document with expressions and their results, as JSON. A want of
// "!" is an expression that must be rejected, when it is compiled or when it
// runs.
type group struct {
	name, given string
	cases       [][2]string
}

func TestSpecification(t *testing.T) {
	t.Parallel()
	for _, groups := range [][]group{syntaxGroups(), projectionGroups(), operatorGroups(), functionGroups()} {
		for _, g := range groups {
			t.Run(g.name, func(t *testing.T) {
				t.Parallel()
				for _, c := range g.cases {
					check(t, g.given, c[0], c[1])
				}
			})
		}
	}
}

func check(t *testing.T, given, expression, want string) {
	t.Helper()
	got, err := search(t, given, expression)
	if want == "!" {
		if err == nil {
			t.Errorf("%s gives %v, want an error", expression, got)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", expression, err)
		return
	}
	wanted, err := value.Decode([]byte(want))
	if err != nil {
		t.Fatalf("want %s: %v", want, err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", expression, diff)
	}
}

func search(t *testing.T, given, expression string) (any, error) {
	t.Helper()
	data, err := value.Decode([]byte(given))
	if err != nil {
		t.Fatalf("given %s: %v", given, err)
	}
	e, err := jmespath.Compile(expression)
	if err != nil {
		return nil, err
	}
	before := value.Clone(data)
	got, err := e.Search(t.Context(), data)
	if !cmp.Equal(before, data) {
		t.Errorf("%s changes its data", expression)
	}
	return got, err
}

func syntaxGroups() []group {
	return []group{
		{"basic", `{"foo":{"bar":{"baz":"correct"}},"null":null}`, [][2]string{
			{"foo", `{"bar":{"baz":"correct"}}`},
			{"foo.bar", `{"baz":"correct"}`},
			{"foo.bar.baz", `"correct"`},
			{"foo\n.\nbar\n.baz", `"correct"`},
			{"foo.bar.baz.bad", `null`},
			{"bad", `null`},
			{"bad.morebad.morebad", `null`},
			{"null", `null`},
		}},
		{"fields of what is not an object", `["one","two"]`, [][2]string{{"one", `null`}, {"[0].foo", `null`}, {"one.two", `null`}}},
		{"current", `{"foo":[{"name":"a"},{"name":"b"}],"bar":{"baz":"qux"}}`, [][2]string{
			{"@.bar", `{"baz":"qux"}`}, {"@.foo[0]", `{"name":"a"}`}, {"@", `{"foo":[{"name":"a"},{"name":"b"}],"bar":{"baz":"qux"}}`},
		}},
		{"escape", `{"foo.bar":"dot","foo bar":"space","foo\nbar":"newline","foo\"bar":"quote","c:\\\\x":"path","/unix":"slash","a":{"b c":1}}`, [][2]string{
			{`"foo.bar"`, `"dot"`},
			{`"foo bar"`, `"space"`},
			{`"foo\nbar"`, `"newline"`},
			{`"foo\"bar"`, `"quote"`},
			{`"c:\\\\x"`, `"path"`},
			{`"/unix"`, `"slash"`},
			{`a."b c"`, `1`},
			{`"\u0061"."b c"`, `1`},
		}},
		{"identifiers", `{"__L":1,"_9":2,"foo_1":3,"☃":4,"":5,"true":6,"let":7,"in":8}`, [][2]string{
			{"__L", `1`}, {"_9", `2`}, {"foo_1", `3`}, {`"☃"`, `4`}, {`""`, `5`}, {"true", `6`}, {"let", `7`}, {"in", `8`}, {"☃", "!"}, {"9a", "!"},
		}},
		{"literal", `{"foo":[{"name":"a"}],"bar":1}`, [][2]string{
			{"`\"foo\"`", `"foo"`},
			{"`\"\\u03a6\"`", `"Φ"`},
			{"`[1, 2, 3]`", `[1,2,3]`},
			{"`{\"a\": \"b\"}`", `{"a":"b"}`},
			{"`true`", `true`},
			{"`false`", `false`},
			{"`null`", `null`},
			{"`0`", `0`},
			{"`1.5`", `1.5`},
			{"` 1`", `1`},
			{"`{\"a\": \"b\"}`.a", `"b"`},
			{"`[0, 1]`[1]", `1`},
			{"`\"a\\`b\"`", "\"a`b\""},
			{"'foo'", `"foo"`},
			{"'  foo  '", `"  foo  "`},
			{"'\"'", `"\""`},
			{`'\''`, `"'"`},
			{"''", `""`},
			{"'a\nb'", `"a\nb"`},
			{`'\n'`, `"\\n"`},
			{"`9007199254740993`", `9007199254740993`},
			{"`123456789012345678901234567890`", `123456789012345678901234567890`},
			{"`-0.5`", `-0.5`},
			{"`\"foo`", "!"},
			{"`foo`", "!"},
			{"'foo", "!"},
			{"`", "!"},
			{"`1 2`", "!"},
		}},
		{"syntax", `{"type":"object"}`, [][2]string{
			{"foo.", "!"},
			{".foo", "!"},
			{"foo..bar", "!"},
			{"foo.bar.", "!"},
			{"foo[.]", "!"},
			{"foo.1", "!"},
			{"foo.-11", "!"},
			{"foo bar", "!"},
			{".", "!"},
			{":", "!"},
			{",", "!"},
			{"]", "!"},
			{"[", "!"},
			{"}", "!"},
			{"{", "!"},
			{")", "!"},
			{"(", "!"},
			{"(&", "!"},
			{"a[", "!"},
			{"a]", "!"},
			{"a][", "!"},
			{"!", "!"},
			{"", "!"},
			{"a.*", `null`},
			{"a.**", "!"},
			{"a[*", "!"},
			{"a[*b]", "!"},
			{"*[0]", `[]`},
			{"a[?", "!"},
			{"a[?b", "!"},
			{"a[?b]", `null`},
			{"{a: b}", `{"a":null}`},
			{"{}", "!"},
			{"{a: }", "!"},
			{"{a: b,}", "!"},
			{"{a}", "!"},
			{"[a, b]", `[null,null]`},
			{"[a,]", "!"},
			{"[,a]", "!"},
			{"a.{b: c}", `null`},
			{"a.[b]", `null`},
			{"a || ", "!"},
			{"|| a", "!"},
			{"a && ", "!"},
			{"a | ", "!"},
			{"| a", "!"},
			{"a ? b", "!"},
			{"#", "!"},
			{"\"\\z\"", "!"},
			{"[?foo", "!"},
			{"foo[0", "!"},
			{"foo[a]", "!"},
			{"foo[99999999999999999999]", "!"},
			{"@foo", "!"},
			{"'a' 'b'", "!"},
			{"&type", "!"},
			{"[&type]", "!"},
			{"type = type", "!"},
			{"$type", "!"},
		}},
		{"let", `{"a":[{"n":1,"v":[1,2]},{"n":2,"v":[3]}],"x":10}`, [][2]string{
			{"let $x = x in a[*].[n, $x]", `[[1,10],[2,10]]`},
			{"a[*].[let $n = n in v[*].[@, $n]]", `[[[[1,1],[2,1]]],[[[3,2]]]]`},
			{"let $x = 'a', $y = 'b' in [$x, $y]", `["a","b"]`},
			{"let $x = 'a' in let $x = 'b' in $x", `"b"`},
			{"map(&(let $n = n in $n), a)", `[1,2]`},
			{"$", `{"a":[{"n":1,"v":[1,2]},{"n":2,"v":[3]}],"x":10}`},
			{"a[?n < $.x].n", `[1,2]`},
			{"let $x = a", "!"},
			{"let a in b", "!"},
		}},
	}
}

func projectionGroups() []group {
	return []group{
		{"index", `{"foo":{"bar":["zero","one","two"]}}`, [][2]string{
			{"foo.bar[0]", `"zero"`}, {"foo.bar[2]", `"two"`}, {"foo.bar[3]", `null`}, {"foo.bar[-1]", `"two"`}, {"foo.bar[-3]", `"zero"`}, {"foo.bar[-4]", `null`}, {"foo[0]", `null`},
		}},
		{"index of a list", `["one",["two"],{"k":[{"v":3}]}]`, [][2]string{{"[0]", `"one"`}, {"[1][0]", `"two"`}, {"[2].k[0].v", `3`}, {"[-1].k", `[{"v":3}]`}}},
		{"slice", `{"foo":[0,1,2,3,4,5,6,7,8,9],"bar":{"baz":1},"s":"häuser"}`, [][2]string{
			{"foo[0:10:1]", `[0,1,2,3,4,5,6,7,8,9]`},
			{"foo[0:10]", `[0,1,2,3,4,5,6,7,8,9]`},
			{"foo[:10]", `[0,1,2,3,4,5,6,7,8,9]`},
			{"foo[::]", `[0,1,2,3,4,5,6,7,8,9]`},
			{"foo[1:9]", `[1,2,3,4,5,6,7,8]`},
			{"foo[0:10:2]", `[0,2,4,6,8]`},
			{"foo[5:]", `[5,6,7,8,9]`},
			{"foo[5::2]", `[5,7,9]`},
			{"foo[::2]", `[0,2,4,6,8]`},
			{"foo[::-1]", `[9,8,7,6,5,4,3,2,1,0]`},
			{"foo[1::2]", `[1,3,5,7,9]`},
			{"foo[10:0:-1]", `[9,8,7,6,5,4,3,2,1]`},
			{"foo[10:5:-1]", `[9,8,7,6]`},
			{"foo[8:2:-2]", `[8,6,4]`},
			{"foo[0:20]", `[0,1,2,3,4,5,6,7,8,9]`},
			{"foo[10:-20:-1]", `[9,8,7,6,5,4,3,2,1,0]`},
			{"foo[-4:-1]", `[6,7,8]`},
			{"foo[:-5:-1]", `[9,8,7,6]`},
			{"foo[20:]", `[]`},
			{"foo[::9223372036854775807]", `[0]`},
			{"foo[::-9223372036854775807]", `[9]`},
			{"foo[8:2:0]", "!"},
			{"foo[2:a:3]", "!"},
			{"foo[1:2:3:4]", "!"},
			{"bar[0:1]", `null`},
			{"baz[:1]", `null`},
			{"s[1:3]", `"äu"`},
			{"s[::-1]", `"resuäh"`},
		}},
		{"slice as projection", `{"foo":[{"a":1},{"a":2},{"b":3}],"bar":[[1,2],[3,4]]}`, [][2]string{
			{"foo[:2].a", `[1,2]`}, {"foo[:].a", `[1,2]`}, {"bar[:][0]", `[1,3]`}, {"foo[::-1].a", `[2,1]`},
		}},
		{"wildcard", `{"foo":{"a":{"n":1},"b":{"n":2},"c":{"m":3}},"bar":[{"n":1},{"x":9},{"n":3}],"s":"t","nest":[[[1,2],[3]],[[4]]]}`, [][2]string{
			{"foo.*.n", `[1,2]`},
			{"foo.*", `[{"n":1},{"n":2},{"m":3}]`},
			{"foo.*.*", `[[1],[2],[3]]`},
			{"*.n", `[]`},
			{"bar[*].n", `[1,3]`},
			{"bar[*]", `[{"n":1},{"x":9},{"n":3}]`},
			{"bar.*", `null`},
			{"foo[*]", `null`},
			{"s.*", `null`},
			{"s[*]", `null`},
			{"bar[*].missing", `[]`},
			{"nest[*][0]", `[[1,2],[4]]`},
			{"nest[*][*][0]", `[[1,3],[4]]`},
			{"missing[*].n", `null`},
			{"missing.*", `null`},
			{"[*]", `null`},
			{"*[0]", `[{"n":1},[[1,2],[3]]]`},
		}},
		{"flatten", `{"foo":[[1,[2,3]],[4],5],"bar":[{"a":[1,2]},{"a":[3]},{"b":0}],"s":"t","o":{"k":1}}`, [][2]string{
			{"foo[]", `[1,[2,3],4,5]`}, {"foo[][]", `[1,2,3,4,5]`}, {"bar[].a[]", `[1,2,3]`}, {"bar[*].a[]", `[1,2,3]`}, {"s[]", `null`}, {"o[]", `null`}, {"missing[]", `null`}, {"[]", `null`}, {"bar[].a", `[[1,2],[3]]`},
		}},
		{"filter", `{"foo":[{"name":"a","n":1},{"name":"b","n":2},{"name":"c","n":2.0,"ok":true},{"name":"d","n":null}],"bar":{"x":1}}`, [][2]string{
			{"foo[?name == 'a']", `[{"name":"a","n":1}]`},
			{"foo[?n == `2`].name", `["b","c"]`},
			{"foo[?n > `1`].name", `["b","c"]`},
			{"foo[?n >= `1`].name", `["a","b","c"]`},
			{"foo[?n < `2`].name", `["a"]`},
			{"foo[?n <= `2` && name != 'a'].name", `["b","c"]`},
			{"foo[?n == `1` || name == 'd'].name", `["a","d"]`},
			{"foo[?ok].name", `["c"]`},
			{"foo[?!ok].name", `["a","b","d"]`},
			{"foo[?n == `null`].name", `["d"]`},
			{"foo[?!(n == `1`)].name", `["b","c","d"]`},
			{"foo[?missing]", `[]`},
			{"bar[?x == `1`]", `null`},
			{"missing[?a]", `null`},
			{"foo[?contains(name, 'a')].n", `[1]`},
			{"foo[?n > `1`] | [0].name", `"b"`},
			{"foo[?name == 'a' || name == 'b' && n == `1`].name", `["a"]`},
			{"foo[?@.name == 'a'].n", `[1]`},
		}},
		{"filter of lists", `{"foo":[[0,1],["a"],[]],"k":[{"key":[0]},{"key":{"b":1}},{"key":null},{"key":"s"},{"key":false}]}`, [][2]string{
			{"foo[?[0] == `0`]", `[[0,1]]`}, {"foo[?@ == `[]`]", `[[]]`}, {"k[?key == `[0]`]", `[{"key":[0]}]`}, {"k[?key == `{\"b\": 1.0}`]", `[{"key":{"b":1}}]`}, {"k[?key]", `[{"key":[0]},{"key":{"b":1}},{"key":"s"}]`}, {"k[?key != `false`] | length(@)", `4`},
		}},
		{"multiselect", `{"foo":{"bar":1,"baz":[{"k":2},{"k":3}]},"x":null}`, [][2]string{
			{"foo.{a: bar}", `{"a":1}`},
			{"foo.{a: bar, b: baz[0].k}", `{"a":1,"b":2}`},
			{`foo.{"a b": bar}`, `{"a b":1}`},
			{"foo.[bar, baz[*].k]", `[1,[2,3]]`},
			{"foo.baz[*].[k]", `[[2],[3]]`},
			{"foo.baz[*].{v: k}", `[{"v":2},{"v":3}]`},
			{"x.{a: b}", `null`},
			{"missing.[a]", `null`},
			{"[foo.bar, x]", `[1,null]`},
			{"{a: foo.bar, b: x}", `{"a":1,"b":null}`},
			{"foo.bar.{a: b}", `{"a":null}`},
			{"foo.[bar, [bar]]", `[1,[1]]`},
		}},
		{"pipe", `{"foo":{"bar":[{"b":1},{"b":2}],"other":{"b":9}}}`, [][2]string{
			{"foo.*.b | [0]", `9`}, {"foo.bar[*].b | [0]", `1`}, {"foo.bar[*].b[0]", `[]`}, {"foo | bar | [1].b", `2`}, {"foo | [0]", `null`}, {"foo.bar | [*].b | [1]", `2`}, {"`null` | [@]", `[null]`}, {"foo.bar[*] | [0] | b || 'x'", `1`},
		}},
	}
}
