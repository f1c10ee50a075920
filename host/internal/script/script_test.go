package script_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/script"
)

// eval compiles and runs text with a new runtime.
func eval(t *testing.T, text string, env script.Env) (any, error) {
	t.Helper()
	rt := script.New(script.Options{})
	return evalWith(t, rt, text, env)
}

func evalWith(t *testing.T, rt *script.Runtime, text string, env script.Env) (any, error) {
	t.Helper()
	c, err := rt.Compile(script.Source{Name: "flow.yaml", Line: 1, Text: text})
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return c.Run(t.Context(), env)
}

func mustEval(t *testing.T, text string, env script.Env) any {
	t.Helper()
	v, err := eval(t, text, env)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return v
}

type object = map[string]any

type list = []any

func TestLanguage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want any
	}{
		"nothing":              {`local x = 1`, nil},
		"number":               {`return 1 + 2`, int64(3)},
		"fraction":             {`return 1 / 4`, 0.25},
		"concatenation":        {`return "a" .. 1 .. "b" .. 2.5`, "a1b2.5"},
		"concatenated call":    {`local function f() return "x", "y" end return "a" .. f()`, "ax"},
		"concat in a closure":  {`local function f(s) return function() return s .. s end end return f("ab")()`, "abab"},
		"concat of a varargs":  {`local function f(...) return "a" .. ... end return f("b", "c")`, "ab"},
		"concat metamethod":    {`local t = setmetatable({}, {__concat = function(a, b) return "joined" end}) return 1 .. t`, "joined"},
		"goto":                 {`local n = 0 for i = 1, 10 do if i % 2 == 0 then goto continue end n = n + i ::continue:: end return n`, int64(25)},
		"pcall result":         {`local ok, v = pcall(function(a) return a * 2 end, 4) return {ok, v}`, list{true, int64(8)}},
		"pcall of a library":   {`return {pcall(string.rep, "x", 3)}`, list{true, "xxx"}},
		"pcall error":          {`local ok, e = pcall(error, {code = 7}) return {ok, e.code}`, list{false, int64(7)}},
		"pcall message":        {`local ok, e = pcall(function() error("bad") end) return e`, "flow.yaml:1: bad"},
		"pcall no function":    {`local ok, e = pcall(42) return {ok, e}`, list{false, "attempt to call a number value"}},
		"xpcall handler":       {`local ok, e = xpcall(function() error("bad", 0) end, function(m) return "<" .. m .. ">" end) return e`, "<bad>"},
		"assert message":       {`local ok, e = pcall(assert, false, "no") return e`, "no"},
		"closures after pcall": {`local x = 1 local function inc() x = x + 1 end pcall(error, "a") inc() return x`, int64(2)},
		"nested pcall":         {`return pcall(pcall, error, "x")`, true},
		"coroutine":            {`local co = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end) return {co(1), co(10)}`, list{int64(2), int64(20)}},
		"generator":            {`local out = {} for v in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do out[#out + 1] = v end return out`, list{int64(1), int64(2), int64(3)}},
		"coroutine status":     {`local co co = coroutine.create(function() coroutine.yield(coroutine.status(co)) end) local a = coroutine.status(co) local _, b = coroutine.resume(co) local c = coroutine.status(co) coroutine.resume(co) return {a, b, c, coroutine.status(co)}`, list{"suspended", "running", "suspended", "dead"}},
		"coroutine in one":     {`local f = coroutine.wrap(function() local inner = coroutine.wrap(function() coroutine.yield(1) coroutine.yield(2) end) inner() coroutine.yield(inner) end) return f()()`, int64(2)},
		"coroutine of library": {`return coroutine.wrap(string.rep)("ab", 2)`, "abab"},
		"coroutine error":      {`local co = coroutine.create(function() error("bad", 0) end) local ok, e = coroutine.resume(co) return {ok, e}`, list{false, "bad"}},
		"dead coroutine":       {`local co = coroutine.create(function() end) coroutine.resume(co) local ok, e = coroutine.resume(co) return e`, "cannot resume dead coroutine"},
		"yield in a callback":  {`local co = coroutine.create(function() string.gsub("a", "a", coroutine.yield) end) local ok, e = coroutine.resume(co) return ok`, false},
		"yield across pcall":   {`local co = coroutine.create(function() return pcall(coroutine.yield, 1) end) local ok, caught = coroutine.resume(co) return caught`, false},
		"select":               {`return {select("#", 1, nil, 3), (select(2, "a", "b", "c")), (select(-1, "a", "b"))}`, list{int64(3), "b", "b"}},
		"tonumber":             {`return {tonumber("0x10"), tonumber(" 1e3 "), tonumber("z", 36), tonumber("10", 2), tonumber("x") == nil, tonumber("inf") == nil}`, list{int64(16), int64(1000), int64(35), int64(2), true, true}},
		"unpack":               {`return {unpack({1, 2, 3}, 2)}`, list{int64(2), int64(3)}},
		"table functions":      {`local t = {3, 1, 2} table.insert(t, 9) table.insert(t, 1, 0) table.remove(t, 2) table.sort(t, function(a, b) return a > b end) return table.concat(t, ",")`, "9,2,1,0"},
		"sort by metamethod":   {`local mt = {__lt = function(a, b) return a.n < b.n end} local t = {} for i, n in ipairs({3, 1, 2}) do t[i] = setmetatable({n = n}, mt) end table.sort(t) return {t[1].n, t[3].n}`, list{int64(1), int64(3)}},
		"string functions":     {`return {("abc"):upper(), ("Hello"):len(), ("hello"):sub(2, -2), ("abc"):byte(-1), ("ab"):rep(2), ("abc"):reverse(), string.char(76, 117)}`, list{"ABC", int64(5), "ell", int64(99), "abab", "cba", "Lu"}},
		"random in range":      {`for i = 1, 100 do local n = math.random(3, 5) if n < 3 or n > 5 then return n end end return "ok"`, "ok"},
		"environment is _G":    {`x = 1 return _G.x`, int64(1)},
		"removed libraries":    {`return {os == nil, io == nil, debug == nil, package == nil, load == nil, loadstring == nil, dofile == nil, getfenv == nil, setfenv == nil, newproxy == nil, collectgarbage == nil, module == nil, channel == nil}`, list{true, true, true, true, true, true, true, true, true, true, true, true, true}},
		"truthiness of a call": {`local t = setmetatable({}, {__call = function(_, a) return a end}) return {pcall(t, 5)}`, list{true, int64(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, mustEval(t, tt.text, script.Env{})); diff != "" {
				t.Errorf("%s\n%s", tt.text, diff)
			}
		})
	}
}

func TestExpression(t *testing.T) {
	t.Parallel()
	env := script.Env{
		State:     object{"count": int64(5), "ready": true, "name": "x", "items": list{int64(1)}},
		Globals:   script.Values{"variables": object{"limit": int64(3)}},
		BareNames: true,
	}
	for text, want := range map[string]any{
		"count > 3 and ready":              true,
		"count > variables.limit":          true,
		"state.name .. '!'":                "x!",
		"#items -- how many":               int64(1),
		"unknown":                          nil,
		"if count > 3 then return 'a' end": "a",
		"local n = count * 2\nreturn n":    int64(10),
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			rt := script.New(script.Options{})
			c, err := rt.CompileExpression(script.Source{Name: "flow.yaml", Text: text})
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Run(t.Context(), env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBareNamesOnlyWhereAsked(t *testing.T) {
	t.Parallel()
	got := mustEval(t, `return count == nil and state.count`, script.Env{State: object{"count": int64(5)}})
	if got != int64(5) {
		t.Errorf("got %v", got)
	}
}

func TestSyntaxErrorPositions(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	for name, tt := range map[string]struct {
		src        script.Source
		expression bool
		want       script.SyntaxError
	}{
		"token":            {script.Source{Name: "f", Line: 10, Column: 5, Text: "local x = 1\nlocal = 2"}, false, script.SyntaxError{File: "f", Line: 11, Column: 11, Message: `syntax error near "="`}},
		"end":              {script.Source{Name: "f", Line: 3, Text: "if x then\n  y()\n"}, false, script.SyntaxError{File: "f", Line: 4, Column: 6, Message: "unexpected end of the script", Hint: "add end: the if in line 3 is not closed"}},
		"expression":       {script.Source{Name: "f", Line: 7, Column: 9, Text: "count >> 3"}, true, script.SyntaxError{File: "f", Line: 7, Column: 16, Message: `syntax error near ">"`, Hint: "the language is Lua 5.1, without >> of Lua 5.3: write math.floor(a / 2^b)"}},
		"chunk":            {script.Source{Name: "f", Line: 7, Text: "if a then return 1 end\nreturn =="}, true, script.SyntaxError{File: "f", Line: 8, Column: 8, Message: `syntax error near "=="`}},
		"long token":       {script.Source{Name: "f", Line: 3, Text: "local a\nlocal while"}, false, script.SyntaxError{File: "f", Line: 4, Column: 7, Message: `syntax error near "while"`}},
		"long string":      {script.Source{Name: "f", Line: 3, Text: "x = 1\n[[a\nb]]"}, false, script.SyntaxError{File: "f", Line: 4, Column: 1, Message: `syntax error near "a\nb"`}},
		"wide letters":     {script.Source{Name: "f", Line: 3, Text: "x = 'größe' ="}, false, script.SyntaxError{File: "f", Line: 3, Column: 13, Message: `syntax error near "="`}},
		"open string":      {script.Source{Name: "f", Line: 3, Text: "x = 1\ny = 'abc\nz = 2"}, false, script.SyntaxError{File: "f", Line: 4, Column: 5, Message: `unterminated string near "abc"`}},
		"open at the end":  {script.Source{Name: "f", Line: 3, Text: "x = 1\ny = 'abc"}, false, script.SyntaxError{File: "f", Line: 4, Column: 5, Message: `unterminated string near "abc"`}},
		"open long string": {script.Source{Name: "f", Line: 3, Text: "x = 1\ny = [[abc\n\n"}, false, script.SyntaxError{File: "f", Line: 4, Column: 5, Message: `unterminated multiline string near "abc\n\n"`}},
		"unknown letter":   {script.Source{Name: "f", Line: 3, Text: "if a ! b then end"}, false, script.SyntaxError{File: "f", Line: 3, Column: 6, Message: `Invalid token near "!"`, Hint: "the language is Lua 5.1, without !: write not"}},
		"label":            {script.Source{Name: "f", Line: 9, Text: "\ngoto away"}, false, script.SyntaxError{File: "f", Line: 10, Message: "no visible label 'away' for <goto> at line 10"}},
		"two values":       {script.Source{Name: "f", Line: 7, Column: 9, Text: "a, b"}, true, script.SyntaxError{File: "f", Line: 7, Column: 9, Message: "not a single expression"}},
		"no loop":          {script.Source{Name: "f", Line: 4, Text: "\nbreak"}, false, script.SyntaxError{File: "f", Line: 5, Message: "no loop to break"}},
		"vararg outside":   {script.Source{Name: "f", Line: 1, Text: "\nlocal a = ..."}, false, script.SyntaxError{File: "f", Line: 2, Message: "cannot use '...' outside a vararg function"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compile := rt.Compile
			if tt.expression {
				compile = rt.CompileExpression
			}
			_, err := compile(tt.src)
			var got *script.SyntaxError
			if !errors.As(err, &got) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// benchState is a state of 20 keys.
func benchState() object {
	state := object{"count": int64(5), "ready": true, "name": "sensor-1", "big": list{}}
	for i := range 16 {
		state[string(rune('a'+i))] = list{int64(i), "text", object{"x": 1.5}}
	}
	return state
}

func BenchmarkNode(b *testing.B) {
	rt := script.New(script.Options{})
	c, err := rt.Compile(script.Source{Name: "flow.yaml", Text: `return {total = state.count * 2, label = state.name, done = true}`})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	env := script.Env{State: benchState()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Run(ctx, env); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCondition(b *testing.B) {
	rt := script.New(script.Options{})
	c, err := rt.CompileExpression(script.Source{Name: "flow.yaml", Text: `count > 3 and ready`})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	env := script.Env{State: benchState(), BareNames: true}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Run(ctx, env); err != nil {
			b.Fatal(err)
		}
	}
}

func TestNilAndATextIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`return nil, "not found"`, `local function find() return nil, "not found" end return find()`} {
		var failure *script.RunError
		if _, err := eval(t, text, script.Env{}); !errors.As(err, &failure) || failure.Message != "not found" {
			t.Errorf("%s: got %v", text, err)
		}
	}
	for text, want := range map[string]any{`return nil, nil`: nil, `return nil, 404`: nil, `return "a", "b"`: "a", `return false, "b"`: false} {
		if got := mustEval(t, text, script.Env{}); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}
