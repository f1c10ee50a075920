package jmespath_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/builtin/jmespath"
	"github.com/the-edge-agent/tea/sdk/value"
)

// group is a document with expressions and what each must give, as JSON. A
// want of "!" is an expression that must be refused, when it is read or when
// it runs.
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
			{"foo", `{"bar":{"baz":"correct"}}`}, {"foo.bar", `{"baz":"correct"}`}, {"foo.bar.baz", `"correct"`},
			{"foo\n.\nbar\n.baz", `"correct"`}, {"foo.bar.baz.bad", `null`}, {"bad", `null`}, {"bad.morebad.morebad", `null`}, {"null", `null`},
		}},
		{"fields of what is no object", `["one","two"]`, [][2]string{{"one", `null`}, {"[0].foo", `null`}, {"one.two", `null`}}},
		{"current", `{"foo":[{"name":"a"},{"name":"b"}],"bar":{"baz":"qux"}}`, [][2]string{
			{"@.bar", `{"baz":"qux"}`}, {"@.foo[0]", `{"name":"a"}`}, {"@", `{"foo":[{"name":"a"},{"name":"b"}],"bar":{"baz":"qux"}}`},
		}},
		{"escape", `{"foo.bar":"dot","foo bar":"space","foo\nbar":"newline","foo\"bar":"quote","c:\\\\x":"path","/unix":"slash","a":{"b c":1}}`, [][2]string{
			{`"foo.bar"`, `"dot"`}, {`"foo bar"`, `"space"`}, {`"foo\nbar"`, `"newline"`}, {`"foo\"bar"`, `"quote"`},
			{`"c:\\\\x"`, `"path"`}, {`"/unix"`, `"slash"`}, {`a."b c"`, `1`}, {`"\u0061"."b c"`, `1`},
		}},
		{"identifiers", `{"__L":1,"_9":2,"foo_1":3,"☃":4,"":5,"true":6,"let":7,"in":8}`, [][2]string{
			{"__L", `1`}, {"_9", `2`}, {"foo_1", `3`}, {`"☃"`, `4`}, {`""`, `5`}, {"true", `6`}, {"let", `7`}, {"in", `8`}, {"☃", "!"}, {"9a", "!"},
		}},
		{"literal", `{"foo":[{"name":"a"}],"bar":1}`, [][2]string{
			{"`\"foo\"`", `"foo"`}, {"`\"\\u03a6\"`", `"Φ"`}, {"`[1, 2, 3]`", `[1,2,3]`}, {"`{\"a\": \"b\"}`", `{"a":"b"}`},
			{"`true`", `true`}, {"`false`", `false`}, {"`null`", `null`}, {"`0`", `0`}, {"`1.5`", `1.5`}, {"` 1`", `1`},
			{"`{\"a\": \"b\"}`.a", `"b"`}, {"`[0, 1]`[1]", `1`}, {"`\"a\\`b\"`", "\"a`b\""}, {"'foo'", `"foo"`}, {"'  foo  '", `"  foo  "`},
			{"'\"'", `"\""`}, {`'\''`, `"'"`}, {"''", `""`}, {"'a\nb'", `"a\nb"`}, {`'\n'`, `"\\n"`},
			{"`9007199254740993`", `9007199254740993`}, {"`123456789012345678901234567890`", `123456789012345678901234567890`}, {"`-0.5`", `-0.5`},
			{"`\"foo`", "!"}, {"`foo`", "!"}, {"'foo", "!"}, {"`", "!"}, {"`1 2`", "!"},
		}},
		{"syntax", `{"type":"object"}`, [][2]string{
			{"foo.", "!"}, {".foo", "!"}, {"foo..bar", "!"}, {"foo.bar.", "!"}, {"foo[.]", "!"}, {"foo.1", "!"}, {"foo.-11", "!"}, {"foo bar", "!"},
			{".", "!"}, {":", "!"}, {",", "!"}, {"]", "!"}, {"[", "!"}, {"}", "!"}, {"{", "!"}, {")", "!"}, {"(", "!"}, {"(&", "!"}, {"a[", "!"}, {"a]", "!"},
			{"a][", "!"}, {"!", "!"}, {"", "!"}, {"a.*", `null`}, {"a.**", "!"}, {"a[*", "!"}, {"a[*b]", "!"}, {"*[0]", `[]`}, {"a[?", "!"}, {"a[?b", "!"}, {"a[?b]", `null`},
			{"{a: b}", `{"a":null}`}, {"{}", "!"}, {"{a: }", "!"}, {"{a: b,}", "!"}, {"{a}", "!"}, {"[a, b]", `[null,null]`}, {"[a,]", "!"}, {"[,a]", "!"},
			{"a.{b: c}", `null`}, {"a.[b]", `null`}, {"a || ", "!"}, {"|| a", "!"}, {"a && ", "!"}, {"a | ", "!"}, {"| a", "!"}, {"a ? b", "!"}, {"#", "!"}, {"\"\\z\"", "!"},
			{"[?foo", "!"}, {"foo[0", "!"}, {"foo[a]", "!"}, {"foo[99999999999999999999]", "!"}, {"@foo", "!"}, {"'a' 'b'", "!"}, {"&type", "!"}, {"[&type]", "!"},
			{"type = type", "!"}, {"$type", "!"},
		}},
		{"let", `{"a":[{"n":1,"v":[1,2]},{"n":2,"v":[3]}],"x":10}`, [][2]string{
			{"let $x = x in a[*].[n, $x]", `[[1,10],[2,10]]`}, {"a[*].[let $n = n in v[*].[@, $n]]", `[[[[1,1],[2,1]]],[[[3,2]]]]`},
			{"let $x = 'a', $y = 'b' in [$x, $y]", `["a","b"]`}, {"let $x = 'a' in let $x = 'b' in $x", `"b"`},
			{"map(&(let $n = n in $n), a)", `[1,2]`}, {"$", `{"a":[{"n":1,"v":[1,2]},{"n":2,"v":[3]}],"x":10}`}, {"a[?n < $.x].n", `[1,2]`}, {"let $x = a", "!"}, {"let a in b", "!"},
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
			{"foo[0:10:1]", `[0,1,2,3,4,5,6,7,8,9]`}, {"foo[0:10]", `[0,1,2,3,4,5,6,7,8,9]`}, {"foo[:10]", `[0,1,2,3,4,5,6,7,8,9]`}, {"foo[::]", `[0,1,2,3,4,5,6,7,8,9]`},
			{"foo[1:9]", `[1,2,3,4,5,6,7,8]`}, {"foo[0:10:2]", `[0,2,4,6,8]`}, {"foo[5:]", `[5,6,7,8,9]`}, {"foo[5::2]", `[5,7,9]`}, {"foo[::2]", `[0,2,4,6,8]`},
			{"foo[::-1]", `[9,8,7,6,5,4,3,2,1,0]`}, {"foo[1::2]", `[1,3,5,7,9]`}, {"foo[10:0:-1]", `[9,8,7,6,5,4,3,2,1]`}, {"foo[10:5:-1]", `[9,8,7,6]`}, {"foo[8:2:-2]", `[8,6,4]`},
			{"foo[0:20]", `[0,1,2,3,4,5,6,7,8,9]`}, {"foo[10:-20:-1]", `[9,8,7,6,5,4,3,2,1,0]`}, {"foo[-4:-1]", `[6,7,8]`}, {"foo[:-5:-1]", `[9,8,7,6]`}, {"foo[20:]", `[]`},
			{"foo[::9223372036854775807]", `[0]`}, {"foo[::-9223372036854775807]", `[9]`},
			{"foo[8:2:0]", "!"}, {"foo[2:a:3]", "!"}, {"foo[1:2:3:4]", "!"}, {"bar[0:1]", `null`}, {"baz[:1]", `null`}, {"s[1:3]", `"äu"`}, {"s[::-1]", `"resuäh"`},
		}},
		{"slice as projection", `{"foo":[{"a":1},{"a":2},{"b":3}],"bar":[[1,2],[3,4]]}`, [][2]string{
			{"foo[:2].a", `[1,2]`}, {"foo[:].a", `[1,2]`}, {"bar[:][0]", `[1,3]`}, {"foo[::-1].a", `[2,1]`},
		}},
		{"wildcard", `{"foo":{"a":{"n":1},"b":{"n":2},"c":{"m":3}},"bar":[{"n":1},{"x":9},{"n":3}],"s":"t","nest":[[[1,2],[3]],[[4]]]}`, [][2]string{
			{"foo.*.n", `[1,2]`}, {"foo.*", `[{"n":1},{"n":2},{"m":3}]`}, {"foo.*.*", `[[1],[2],[3]]`}, {"*.n", `[]`}, {"bar[*].n", `[1,3]`}, {"bar[*]", `[{"n":1},{"x":9},{"n":3}]`},
			{"bar.*", `null`}, {"foo[*]", `null`}, {"s.*", `null`}, {"s[*]", `null`}, {"bar[*].missing", `[]`}, {"nest[*][0]", `[[1,2],[4]]`}, {"nest[*][*][0]", `[[1,3],[4]]`},
			{"missing[*].n", `null`}, {"missing.*", `null`}, {"[*]", `null`}, {"*[0]", `[{"n":1},[[1,2],[3]]]`},
		}},
		{"flatten", `{"foo":[[1,[2,3]],[4],5],"bar":[{"a":[1,2]},{"a":[3]},{"b":0}],"s":"t","o":{"k":1}}`, [][2]string{
			{"foo[]", `[1,[2,3],4,5]`}, {"foo[][]", `[1,2,3,4,5]`}, {"bar[].a[]", `[1,2,3]`}, {"bar[*].a[]", `[1,2,3]`}, {"s[]", `null`}, {"o[]", `null`}, {"missing[]", `null`}, {"[]", `null`}, {"bar[].a", `[[1,2],[3]]`},
		}},
		{"filter", `{"foo":[{"name":"a","n":1},{"name":"b","n":2},{"name":"c","n":2.0,"ok":true},{"name":"d","n":null}],"bar":{"x":1}}`, [][2]string{
			{"foo[?name == 'a']", `[{"name":"a","n":1}]`}, {"foo[?n == `2`].name", `["b","c"]`}, {"foo[?n > `1`].name", `["b","c"]`}, {"foo[?n >= `1`].name", `["a","b","c"]`},
			{"foo[?n < `2`].name", `["a"]`}, {"foo[?n <= `2` && name != 'a'].name", `["b","c"]`}, {"foo[?n == `1` || name == 'd'].name", `["a","d"]`}, {"foo[?ok].name", `["c"]`}, {"foo[?!ok].name", `["a","b","d"]`},
			{"foo[?n == `null`].name", `["d"]`}, {"foo[?!(n == `1`)].name", `["b","c","d"]`}, {"foo[?missing]", `[]`}, {"bar[?x == `1`]", `null`}, {"missing[?a]", `null`},
			{"foo[?contains(name, 'a')].n", `[1]`}, {"foo[?n > `1`] | [0].name", `"b"`}, {"foo[?name == 'a' || name == 'b' && n == `1`].name", `["a"]`}, {"foo[?@.name == 'a'].n", `[1]`},
		}},
		{"filter of lists", `{"foo":[[0,1],["a"],[]],"k":[{"key":[0]},{"key":{"b":1}},{"key":null},{"key":"s"},{"key":false}]}`, [][2]string{
			{"foo[?[0] == `0`]", `[[0,1]]`}, {"foo[?@ == `[]`]", `[[]]`}, {"k[?key == `[0]`]", `[{"key":[0]}]`}, {"k[?key == `{\"b\": 1.0}`]", `[{"key":{"b":1}}]`}, {"k[?key]", `[{"key":[0]},{"key":{"b":1}},{"key":"s"}]`}, {"k[?key != `false`] | length(@)", `4`},
		}},
		{"multiselect", `{"foo":{"bar":1,"baz":[{"k":2},{"k":3}]},"x":null}`, [][2]string{
			{"foo.{a: bar}", `{"a":1}`}, {"foo.{a: bar, b: baz[0].k}", `{"a":1,"b":2}`}, {`foo.{"a b": bar}`, `{"a b":1}`}, {"foo.[bar, baz[*].k]", `[1,[2,3]]`}, {"foo.baz[*].[k]", `[[2],[3]]`}, {"foo.baz[*].{v: k}", `[{"v":2},{"v":3}]`},
			{"x.{a: b}", `null`}, {"missing.[a]", `null`}, {"[foo.bar, x]", `[1,null]`}, {"{a: foo.bar, b: x}", `{"a":1,"b":null}`}, {"foo.bar.{a: b}", `{"a":null}`}, {"foo.[bar, [bar]]", `[1,[1]]`},
		}},
		{"pipe", `{"foo":{"bar":[{"b":1},{"b":2}],"other":{"b":9}}}`, [][2]string{
			{"foo.*.b | [0]", `9`}, {"foo.bar[*].b | [0]", `1`}, {"foo.bar[*].b[0]", `[]`}, {"foo | bar | [1].b", `2`}, {"foo | [0]", `null`}, {"foo.bar | [*].b | [1]", `2`}, {"`null` | [@]", `[null]`}, {"foo.bar[*] | [0] | b || 'x'", `1`},
		}},
	}
}

func operatorGroups() []group {
	return []group{
		{"boolean", `{"t":true,"f":false,"n":null,"e":[],"o":{},"s":"","z":0,"l":[1],"one":1,"two":2}`, [][2]string{
			{"t || f", `true`}, {"f || n", `null`}, {"n || f", `false`}, {"e || 'd'", `"d"`}, {"o || 'd'", `"d"`}, {"s || 'd'", `"d"`}, {"z || 'd'", `0`}, {"l || 'd'", `[1]`}, {"f || n || one", `1`},
			{"t && one", `1`}, {"f && one", `false`}, {"e && one", `[]`}, {"z && one", `1`}, {"!t", `false`}, {"!n", `true`}, {"!z", `false`}, {"!!l", `true`}, {"t && f || one", `1`}, {"t || f && n", `true`}, {"(t || f) && n", `null`},
			{"one < two", `true`}, {"one > two", `false`}, {"one <= one", `true`}, {"one >= two", `false`}, {"one == `1.0`", `true`}, {"one != two", `true`}, {"s == ''", `true`}, {"t == one", `false`}, {"l == `[1]`", `true`}, {"'a' < 'b'", `null`}, {"one < 'b'", `null`}, {"n < one", `null`}, {"missing == `null`", `true`},
			{"!t == f", `true`}, {"t == !f", `true`}, {"one < two && two > one", `true`},
		}},
		{"arithmetic", `{"a":7,"b":2,"f":1.5,"s":"x","big":9007199254740993,"huge":9223372036854775807,"z":0}`, [][2]string{
			{"a + b", `9`}, {"a - b", `5`}, {"a * b", `14`}, {"a / b", `3.5`}, {"`6` / b", `3`}, {"a // b", `3`}, {"(-a) // b", `-4`}, {"a // (-b)", `-4`}, {"a % b", `1`}, {"-a", `-7`}, {"+a", `7`}, {"a + b * b", `11`}, {"(a + b) * b", `18`}, {"a + f", `8.5`}, {"a + s", `null`}, {"-s", `null`}, {"a / z", "!"}, {"a % z", "!"},
			{"big + `1`", `9007199254740994`}, {"huge + `1`", `9223372036854775808`}, {"a × b", `14`}, {"a ÷ b", `3.5`}, {"a − b", `5`},
		}},
		{"exact integers", `{"l":[{"id":9007199254740993},{"id":9007199254740992},{"id":123456789012345678901234567890}]}`, [][2]string{
			{"l[?id == `9007199254740993`]", `[{"id":9007199254740993}]`}, {"l[?id > `9007199254740992`] | length(@)", `2`}, {"sort_by(l, &id)[0].id", `9007199254740992`}, {"max(l[*].id)", `123456789012345678901234567890`}, {"l[1].id < `9007199254740992.5`", `false`}, {"to_string(l[2].id)", `"123456789012345678901234567890"`}, {"sum(l[:2].id)", `18014398509481985`},
		}},
	}
}

func functionGroups() []group {
	given := `{"foo":-1,"zero":0,"numbers":[-1,3,4,5],"array":[-1,3,4,5,"a","100"],"strings":["a","b","c"],"decimals":[1.01,1.2,-1.5],"str":"Str","false":false,"empty_list":[],"empty_hash":{},
		"objects":{"foo":"bar","bar":"baz"},"null_key":null,"people":[{"age":20,"s":"20","name":"a"},{"age":40,"s":"40","name":"b"},{"age":30,"s":"30","name":"c"},{"age":30,"name":"d"}]}`
	return []group{{"functions", given, [][2]string{
		{"abs(foo)", `1`}, {"abs(`-1.5`)", `1.5`}, {"abs(str)", "!"}, {"abs(`false`)", "!"}, {"abs()", "!"}, {"abs(`1`, `2`)", "!"}, {"unknown(`1`)", "!"}, {"foo.bar()", "!"}, {`"abs"(foo)`, "!"},
		{"avg(numbers)", `2.75`}, {"avg(`[2, 4]`)", `3`}, {"avg(array)", "!"}, {"avg('abc')", "!"}, {"avg(empty_list)", `null`},
		{"ceil(`1.2`)", `2`}, {"ceil(decimals[2])", `-1`}, {"ceil(`3`)", `3`}, {"ceil('a')", "!"}, {"floor(`1.9`)", `1`}, {"floor(decimals[2])", `-2`}, {"floor(str)", "!"},
		{"contains('abc', 'a')", `true`}, {"contains('abc', 'd')", `false`}, {"contains(strings, 'a')", `true`}, {"contains(numbers, `3.0`)", `true`}, {"contains(`[{\"a\":1}]`, `{\"a\":1}`)", `true`}, {"contains(decimals, `1.2`)", `true`}, {"contains(`false`, 'd')", "!"}, {"contains('abc', `1`)", `false`},
		{"ends_with(str, 'r')", `true`}, {"ends_with(str, 'SStr')", `false`}, {"ends_with(str, `0`)", "!"}, {"starts_with(str, 'S')", `true`}, {"starts_with(str, 'String')", `false`}, {"starts_with(str, `0`)", "!"},
		{"join(', ', strings)", `"a, b, c"`}, {"join(',', empty_list)", `""`}, {"join(',', array)", "!"}, {"join('|', objects.*)", `"baz|bar"`}, {"join(`1`, strings)", "!"},
		{"keys(objects)", `["bar","foo"]`}, {"keys(empty_hash)", `[]`}, {"keys(foo)", "!"}, {"values(objects)", `["baz","bar"]`}, {"values(foo)", "!"}, {"items(objects)", `[["bar","baz"],["foo","bar"]]`}, {"from_items(items(objects))", `{"bar":"baz","foo":"bar"}`}, {"from_items(`[[1, 2]]`)", "!"}, {"from_items(`[[\"a\"]]`)", "!"},
		{"length('abc')", `3`}, {"length('✓foo')", `4`}, {"length('')", `0`}, {"length(array)", `6`}, {"length(objects)", `2`}, {"length(`false`)", "!"}, {"length(foo)", "!"},
		{"map(&age, people)", `[20,40,30,30]`}, {"map(&s, people)", `["20","40","30",null]`}, {"map(&a, people)[0]", `null`}, {"map(&a, 'x')", "!"}, {"map(age, people)", "!"},
		{"max(numbers)", `5`}, {"max(decimals)", `1.2`}, {"max(strings)", `"c"`}, {"max(array)", "!"}, {"max(empty_list)", `null`}, {"max(`abc`)", "!"}, {"min(numbers)", `-1`}, {"min(decimals)", `-1.5`}, {"min(strings)", `"a"`}, {"min(empty_list)", `null`},
		{"max_by(people, &age).name", `"b"`}, {"max_by(people, &name).age", `30`}, {"max_by(people, &s)", "!"}, {"max_by(people, age)", "!"}, {"max_by(empty_list, &age)", `null`}, {"min_by(people, &age).name", `"a"`}, {"min_by(people, &missing)", "!"},
		{"merge(`{\"a\":1}`, `{\"b\":2}`)", `{"a":1,"b":2}`}, {"merge(`{\"a\":1}`, `{\"a\":2}`)", `{"a":2}`}, {"merge(objects, strings)", "!"}, {"merge()", "!"},
		{"not_null(null_key, str)", `"Str"`}, {"not_null(missing, null_key)", `null`}, {"not_null(zero, str)", `0`}, {"not_null()", "!"},
		{"reverse(numbers)", `[5,4,3,-1]`}, {"reverse('hälb')", `"bläh"`}, {"reverse('')", `""`}, {"reverse(foo)", "!"},
		{"sort(numbers)", `[-1,3,4,5]`}, {"sort(decimals)", `[-1.5,1.01,1.2]`}, {"sort(`[\"b\",\"a\",\"B\"]`)", `["B","a","b"]`}, {"sort(array)", "!"}, {"sort(empty_list)", `[]`}, {"sort(@)", "!"},
		{"sort_by(people, &age)[*].name", `["a","c","d","b"]`}, {"sort_by(people, &s)", "!"}, {"sort_by(people, name)", "!"}, {"sort_by(empty_list, &age)", `[]`}, {"sort_by(people, &`false`)", "!"},
		{"sum(numbers)", `11`}, {"sum(decimals)", `0.71`}, {"sum(empty_list)", `0`}, {"sum(array)", "!"},
		{"to_array('foo')", `["foo"]`}, {"to_array(`0`)", `[0]`}, {"to_array(numbers)", `[-1,3,4,5]`}, {"to_array(`null`)", `[null]`},
		{"to_string('foo')", `"foo"`}, {"to_string(`1.2`)", `"1.2"`}, {"to_string(`[0, 1]`)", `"[0,1]"`}, {"to_string(objects)", `"{\"bar\":\"baz\",\"foo\":\"bar\"}"`}, {"to_string(`null`)", `"null"`},
		{"to_number('1.5')", `1.5`}, {"to_number('4')", `4`}, {"to_number('notanumber')", `null`}, {"to_number(`false`)", `null`}, {"to_number(`[0]`)", `null`}, {"to_number('0x10')", `null`}, {"to_number('inf')", `null`}, {"to_number(`3`)", `3`}, {"to_number('')", `null`},
		{"type('abc')", `"string"`}, {"type(`1.0`)", `"number"`}, {"type(`2`)", `"number"`}, {"type(`true`)", `"boolean"`}, {"type(null_key)", `"null"`}, {"type(`[0]`)", `"array"`}, {"type(`{\"a\":\"b\"}`)", `"object"`}, {"type(&foo)", "!"},
		{"find_first('subject string', 'string')", `8`}, {"find_first('ß string', 'string')", `2`}, {"find_first('subject', 'e', `4`)", `4`}, {"find_first('aaa', 'a', `2`, `1`)", `null`}, {"find_last('abcabc', 'b')", `4`}, {"find_last('abcabc', 'b', `0`, `4`)", `1`}, {"find_first('a', '')", `null`}, {"find_first('abc', 'b', `-2`)", `1`}, {"find_first('a', 'a', `0.5`)", "!"},
		{"lower('ÄB')", `"äb"`}, {"upper('äb')", `"ÄB"`}, {"lower(`1`)", "!"}, {"trim('  a ')", `"a"`}, {"trim_left('xxa', 'x')", `"a"`}, {"trim_right('a--', '-')", `"a"`}, {"trim('ääaä', 'ä')", `"a"`},
		{"pad_left('ä', `3`)", `"  ä"`}, {"pad_right('a', `3`, '-')", `"a--"`}, {"pad_left('abc', `2`)", `"abc"`}, {"pad_left('a', `-1`)", "!"}, {"pad_left('a', `3`, 'xy')", "!"}, {"pad_left('a', `99999999`)", "!"},
		{"replace('aaa', 'a', 'b')", `"bbb"`}, {"replace('aaa', 'a', 'b', `1`)", `"baa"`}, {"replace('aaa', 'a', 'b', `-1`)", "!"}, {"split('a,b,c', ',')", `["a","b","c"]`}, {"split('a,b,c', ',', `1`)", `["a","b,c"]`}, {"split('', ',')", `[]`}, {"split('abc', '')", `["a","b","c"]`}, {"split('a', ',', `0`)", `["a"]`},
		{"zip(strings, numbers)", `[["a",-1],["b",3],["c",4]]`}, {"zip(strings)", `[["a"],["b"],["c"]]`}, {"zip(strings, foo)", "!"}, {"zip()", "!"},
		{"group_by(people, &name) | keys(@)", `["a","b","c","d"]`}, {"group_by(people[?s], &s).\"20\"[0].name", `"a"`}, {"group_by(people, &age)", "!"}, {"group_by(empty_list, &age)", `{}`},
		{"length(keys(objects))", `2`}, {"people[?age > `20`] | sort_by(@, &name)[-1].name", `"d"`}, {"array | [?type(@) == 'string']", `["a","100"]`},
	}}}
}
