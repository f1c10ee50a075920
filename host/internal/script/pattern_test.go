package script_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"

	"github.com/the-edge-agent/tea/host/internal/script"
)

// ordinary are patterns on which Lua implementations agree.
var ordinary = []struct{ subject, pattern string }{
	{"hello world", "wor"},
	{"hello world", "o"},
	{"hello", "l+"},
	{"hello", "(h)(.)"},
	{"hello", "^h"},
	{"hello", "^e"},
	{"hello", "o$"},
	{"hello", "l$"},
	{"key = value", "(%w+)%s*=%s*(%w+)"},
	{"2024-05-06", "(%d+)-(%d+)-(%d+)"},
	{"THE (quick) fox", "%((%a+)%)"},
	{"abc", "()b()"},
	{"a,b,,c", "([^,]*)"},
	{"f(a(b)c)d", "%b()"},
	{"aXbXc", "[X]"},
	{"abc123def", "%a+"},
	{"abc123def", "%A+"},
	{"  trim  ", "^%s*(.-)%s*$"},
	{"x-y", "[a-]"},
	{"x]y", "[]]"},
	{"a^b", "[%^]"},
	{"aaa", "a-"},
	{"aaab", "a-b"},
	{"aaa", "a*a"},
	{"aaa", "a?a?a?a"},
	{"hello hello", "(h%a+) %1"},
	{"abcabc", "(abc)%1"},
	{"0x1F", "0[xX](%x+)"},
	{"tab\there", "%c"},
	{"UPPER lower", "%u+"},
	{"UPPER lower", "%l+"},
	{"a.b", "a%.b"},
	{"axb", "a.b"},
	{"[tag]", "%[(.-)%]"},
	{"100%", "%%"},
	{"a+b", "a%+b"},
	{"path/to/file.txt", "([^/]+)%.(%w+)$"},
	{"", "x*"},
	{"", "^$"},
	{"one;two;;four", "[^;]+"},
	{"ab12", "[%a%d]+"},
	{"ab-12", "[%w-]+"},
	{"café", "[\x80-\xff]+"},
	{"punct!?", "%p+"},
	{"non punct", "%P+"},
	{"((a))", "%b()"},
	{"(a", "%b()"},
	{"a$b", "a$b"},
	{"a*b", "a*b"},
	{"(x)", "[()]x[()]"},
	{"1.5e10", "%d+%.?%d*e?%d*"},
}

// TestPatternsLikeLua compares with gopher-lua's own library.
func TestPatternsLikeLua(t *testing.T) {
	t.Parallel()
	const text = `
		local s, p = input[1], input[2]
		local out = {}
		local function add(...)
			local line = {}
			for i = 1, select("#", ...) do line[i] = tostring((select(i, ...))) end
			out[#out + 1] = table.concat(line, "|")
		end
		local a, b, c, d = string.find(s, p) add(a, b, c, d)
		local a, b, c = string.match(s, p) add(a, b, c)
		add(string.gsub(s, p, "<%0>"))
		add(string.gsub(s, p, "<%0>", 1))
		add(string.gsub(s, p, string.upper))
		add(string.gsub(s, p, {a = "1", hello = "2"}))
		if p:sub(1, 1) ~= "^" then for a, b in string.gmatch(s, p) do add(a, b) end end
		return table.concat(out, "\n")`
	rt := script.New(script.Options{})
	for _, tt := range ordinary {
		t.Run(tt.subject+" "+tt.pattern, func(t *testing.T) {
			t.Parallel()
			got, err := evalWith(t, rt, text, script.Env{Globals: script.Values{"input": list{tt.subject, tt.pattern}}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(stockLua(t, text, tt.subject, tt.pattern), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func stockLua(t *testing.T, text, subject, pattern string) any {
	t.Helper()
	L := lua.NewState()
	defer L.Close()
	input := L.NewTable()
	input.Append(lua.LString(subject))
	input.Append(lua.LString(pattern))
	L.SetGlobal("input", input)
	if err := L.DoString(text); err != nil {
		t.Fatal(err)
	}
	return L.Get(-1).String()
}

// TestPatternsBeyondStock has patterns that gopher-lua's library lacks or gets
// wrong.
func TestPatternsBeyondStock(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		`return {string.find("THE (quick) fox", "%f[%a]%a+%f[%A]", 5)}`:                                         list{int64(6), int64(10)},
		`return (string.gsub("THE quick", "%f[%a]%a", string.lower))`:                                           "tHE quick",
		`return {string.find("a.b", ".", 2, true)}`:                                                             list{int64(2), int64(2)},
		`return {string.find("abc", "b", -2)}`:                                                                  list{int64(2), int64(2)},
		`return {string.find("abc", "", 10)}`:                                                                   list{int64(4), int64(3)},
		`return (string.gsub("abc", "%w", "%%%0"))`:                                                             "%a%b%c",
		`return (string.gsub("abc", "", "-"))`:                                                                  "-a-b-c-",
		`return {string.match("key=val", "()=()")}`:                                                             list{int64(4), int64(5)},
		`return {string.gsub("abc", "(b)()", "%2%1")}`:                                                          list{"a3bc", int64(1)},
		`local n = 0 for _ in ("^a^a"):gmatch("^a") do n = n + 1 end return n`:                                  int64(2),
		`return string.format("%5d|%-5s|%05.1f|%x|%q|%c|%%|%s", 42, "ab", 3.14159, 255, 'a"b', 65, {1} ~= nil)`: `   42|ab   |003.1|ff|"a\"b"|A|%|true`,
		`return string.format("%.3s|%5.1s|%i|%g", "abcdef", "xy", 3.7, 0.5)`:                                    `abc|    x|3|0.5`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, mustEval(t, text, script.Env{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzPattern runs patterns on subjects: whatever they are, the match ends, and
// the result of find is a part of the subject.
func FuzzPattern(f *testing.F) {
	for _, o := range ordinary[:12] {
		f.Add(o.subject, o.pattern)
	}
	f.Add("aaaa", "%f[%w]")
	rt := script.New(script.Options{Timeout: 200 * time.Millisecond})
	c, err := rt.Compile(script.Source{Name: "f", Text: `
		local a, b = string.find(s, p)
		local removed = string.gsub(s, p, "")
		return {a or tea.null, b or tea.null, #removed}`})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, subject, pattern string) {
		got, err := c.Run(t.Context(), script.Env{Globals: script.Values{"s": subject, "p": pattern}})
		if err != nil {
			if strings.Contains(err.Error(), "runtime error") {
				t.Fatal(err)
			}
			return
		}
		out := got.(list)
		if out[0] != nil {
			start, end := out[0].(int64), out[1].(int64)
			if start < 1 || end < start-1 || end > int64(len(subject)) {
				t.Errorf("found %d..%d in %d bytes", start, end, len(subject))
			}
		}
		if n := out[2].(int64); n > int64(len(subject)) {
			t.Errorf("removing made %d bytes of %d", n, len(subject))
		}
	})
}
