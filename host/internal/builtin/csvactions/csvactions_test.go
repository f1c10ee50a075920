package csvactions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/builtin/actiontest"
	"github.com/the-edge-agent/tea/host/internal/builtin/csvactions"
	tea "github.com/the-edge-agent/tea/sdk"
)

type (
	params = actiontest.Params
	list   = []any
)

func TestParse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.csv"), []byte("\ufeffa;b\n1;2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := actiontest.Open(t, csvactions.Bundle("1.0.0", dir), nil)
	for _, test := range []struct {
		name    string
		params  params
		data    list
		headers list
	}{
		{"objects", params{"text": "a,b\n1,x\n2,y\n"}, list{params{"a": "1", "b": "x"}, params{"a": "2", "b": "y"}}, list{"a", "b"}},
		{"CRLF, no end", params{"text": "a,b\r\n1,x"}, list{params{"a": "1", "b": "x"}}, list{"a", "b"}},
		{"CR", params{"text": "a\r1\r"}, list{params{"a": "1"}}, list{"a"}},
		{"quotes", params{"text": "a,b\n\"x, \"\"y\"\"\",\"two\r\nlines\"\n"}, list{params{"a": `x, "y"`, "b": "two\r\nlines"}}, list{"a", "b"}},
		{"byte order mark", params{"text": "\ufeffa\n1\n"}, list{params{"a": "1"}}, list{"a"}},
		{"empty fields and lines", params{"text": "a,b\n\n,\n\n"}, list{params{"a": "", "b": ""}}, list{"a", "b"}},
		{"spaces stay", params{"text": "a\n 1 \n"}, list{params{"a": " 1 "}}, list{"a"}},
		{"strings stay strings", params{"text": "a\n007\n"}, list{params{"a": "007"}}, list{"a"}},
		{"empty", params{"text": ""}, list{}, list{}},
		{"header alone", params{"text": "a,b\n"}, list{}, list{"a", "b"}},
		{"no header", params{"text": "1,2\n3,4\n", "has_header": false}, list{list{"1", "2"}, list{"3", "4"}}, list{}},
		{"given headers", params{"text": "1,2\n", "has_header": false, "headers": list{"x", "y"}}, list{params{"x": "1", "y": "2"}}, list{"x", "y"}},
		{"headers renamed", params{"text": "a,b\n1,2\n", "headers": list{"x", "y"}}, list{params{"x": "1", "y": "2"}}, list{"x", "y"}},
		{"tab", params{"text": "a\tb\n1\t2\n", "delimiter": "\t"}, list{params{"a": "1", "b": "2"}}, list{"a", "b"}},
		{"written tab", params{"text": "a\tb\n1\t2\n", "delimiter": `\t`}, list{params{"a": "1", "b": "2"}}, list{"a", "b"}},
		{"file", params{"path": "a.csv", "delimiter": ";"}, list{params{"a": "1", "b": "2"}}, list{"a", "b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			want := params{"success": true, "data": test.data, "headers": test.headers, "row_count": int64(len(test.data))}
			if diff := cmp.Diff(want, c.Must("csv.parse", test.params)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParseErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "latin.csv"), []byte("a\ngr\xfcn\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := actiontest.Open(t, csvactions.Bundle("1.0.0", dir), nil)
	for _, test := range []struct {
		params params
		want   string
		line   any
	}{
		{params{"text": "a,b\n1,2\n3\n"}, "line 3: the row has 1 fields, the header has 2", 3},
		{params{"text": "a,b\n\"1\n2\",2\n3,4,5\n"}, "line 4: the row has 3 fields, the header has 2", 4},
		{params{"text": "1,2\n3\n", "has_header": false}, "line 2: the row has 1 fields, the first row has 2", 2},
		{params{"text": "1\n", "has_header": false, "headers": list{"a", "b"}}, "line 1: the row has 1 fields, headers has 2", 1},
		{params{"text": "a,b\n", "headers": list{"a"}}, "line 1: the header has 2 columns, but 1 headers were given", 1},
		{params{"text": "a\n\"x\n"}, "line 2, column 1: this quote is not closed", 2},
		{params{"text": "a,b\nü,\"x\"y\n"}, "line 2, column 6: after a closing quote", 2},
		{params{"text": "a,b\nxy\"z,1\n"}, "line 2, column 3: a quote inside an unquoted field", 2},
		{params{"text": "a,a\n"}, `duplicate column "a"`, nil},
		{params{"text": "a", "headers": list{"x", "x"}}, `duplicate column "x"`, nil},
		{params{"path": "latin.csv"}, "not valid UTF-8", nil},
		{params{"text": "a", "delimiter": ",,"}, "must be one character", nil},
		{params{"text": "a", "delimiter": "\""}, "must be one character", nil},
		{params{}, "either text or path", nil},
		{params{"text": "a", "path": "b"}, "either text or path", nil},
	} {
		e := c.Fails(tea.ValidationError, "csv.parse", test.params)
		if !strings.Contains(e.Message, test.want) || test.line != nil && e.Details["line"] != test.line {
			t.Errorf("%v: %v at %v, want %q at %v", test.params, e, e.Details["line"], test.want, test.line)
		}
	}
	c.Fails(tea.NotFound, "csv.parse", params{"path": "missing.csv"})
	c.Fails(tea.PermissionDenied, "csv.parse", params{"path": "../a.csv"})
}

func TestStringify(t *testing.T) {
	t.Parallel()
	c := actiontest.Open(t, csvactions.Bundle("1.0.0", ""), nil)
	for _, test := range []struct {
		name   string
		params params
		want   string
	}{
		{"union of members, sorted", params{"data": list{params{"b": 1, "a": "x"}, params{"c": true}}}, "a,b,c\r\nx,1,\r\n,,true\r\n"},
		{"given headers choose and order", params{"data": list{params{"b": 1, "a": 2, "x": 3}}, "headers": list{"b", "a", "n"}}, "b,a,n\r\n1,2,\r\n"},
		{"arrays", params{"data": list{list{1, "a"}, list{nil, 2.5}}}, "1,a\r\n,2.5\r\n"},
		{"arrays with headers", params{"data": list{list{1, 2}}, "headers": list{"x", "y"}}, "x,y\r\n1,2\r\n"},
		{"quoting", params{"data": list{list{"a,b", "c\"d", "e\nf", " g"}}}, "\"a,b\",\"c\"\"d\",\"e\nf\", g\r\n"},
		{"delimiter", params{"data": list{list{"a;b", "c,d"}}, "delimiter": ";"}, "\"a;b\";c,d\r\n"},
		{"values within", params{"data": list{list{params{"k": 1}, list{1, 2}}}}, "\"{\"\"k\"\":1}\",\"[1,2]\"\r\n"},
		{"one empty field is not an empty line", params{"data": list{list{""}}}, "\"\"\r\n"},
		{"nothing", params{"data": list{}}, ""},
		{"headers alone", params{"data": list{}, "headers": list{"a"}}, "a\r\n"},
		{"long integers", params{"data": list{list{9007199254740993}}}, "9007199254740993\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			want := params{"success": true, "text": test.want, "row_count": int64(len(test.params["data"].(list)))}
			if diff := cmp.Diff(want, c.Must("csv.stringify", test.params)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if e := c.Fails(tea.ValidationError, "csv.stringify", params{"data": list{1}}); e.Message != "csv: data[0]: expected an object or an array, got integer" {
		t.Errorf("got %q", e.Message)
	}
	c.Fails(tea.ValidationError, "csv.stringify", params{"data": list{list{1}}, "headers": list{"a", "b"}})
	c.Fails(tea.ValidationError, "csv.stringify", params{"data": "x"})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add("a,b\n\"1\n\",2\n", ",")
	f.Add("\ufeff\"\"\"\"\r\n;\r", ";")
	f.Fuzz(func(t *testing.T, text, delimiter string) {
		table, err := csvactions.Parse(text, csvactions.Options{Delimiter: delimiter})
		if err != nil {
			return
		}
		c := actiontest.Open(t, csvactions.Bundle("1.0.0", ""), nil)
		written, err := c.Call(t.Context(), "csv.stringify", params{"data": table.Data(), "delimiter": delimiter})
		if err != nil {
			return // a delimiter that Parse takes for a default
		}
		again, err := csvactions.Parse(written["text"].(string), csvactions.Options{Delimiter: delimiter})
		if err != nil {
			t.Fatalf("%q does not read what it wrote, %q: %v", text, written["text"], err)
		}
		if diff := cmp.Diff(table, again); diff != "" {
			t.Errorf("%q written as %q (-before +after):\n%s", text, written["text"], diff)
		}
	})
}
