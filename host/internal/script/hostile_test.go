package script_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host/internal/script"
)

// hostile scripts, and what must end each of them. None may take longer than
// its deadline and a little, and none may spoil the runtime for the next one.
var hostile = map[string]struct {
	text string
	want script.Kind
}{
	// Endless loops.
	"loop":                        {`while true do end`, script.DeadlineError},
	"numeric for":                 {`for i = 1, 1e18 do end`, script.DeadlineError},
	"goto loop":                   {`::a:: goto a`, script.DeadlineError},
	"loop around pcall":           {`while true do pcall(function() while true do end end) end`, script.DeadlineError},
	"loop around xpcall":          {`while true do xpcall(function() while true do end end, function() while true do end end) end`, script.DeadlineError},
	"pcall as comparator":         {`local t = {} for i = 1, 1e5 do t[i] = i end while true do table.sort(t, pcall) end`, script.DeadlineError},
	"coroutine loop":              {`local f = coroutine.wrap(function() while true do coroutine.yield() end end) while true do f() end`, script.DeadlineError},
	"loop in a coroutine":         {`coroutine.wrap(function() while true do end end)()`, script.DeadlineError},
	"resume swallows":             {`while true do coroutine.resume(coroutine.create(function() while true do end end)) end`, script.DeadlineError},
	"tail calls":                  {`local function f() return f() end return f()`, script.DeadlineError},
	"tail calls in pcall":         {`local function f() return f() end while true do pcall(f) end`, script.DeadlineError},
	"metamethod loop":             {`local t = setmetatable({}, {__index = function() while true do end end}) return t.x`, script.DeadlineError},
	"tostring loop":               {`return tostring(setmetatable({}, {__tostring = function() while true do end end}))`, script.DeadlineError},
	"gsub callback loop":          {`return string.gsub("a", "a", function() while true do end end)`, script.DeadlineError},
	"inconsistent comparator":     {`local t = {} for i = 1, 1e5 do t[i] = i end while true do table.sort(t, function() return true end) end`, script.DeadlineError},
	"iterator that never ends":    {`for k in function() return 1 end do end`, script.DeadlineError},
	"loop in the error handler":   {`return xpcall(error, function() while true do end end)`, script.DeadlineError},
	"while collecting coroutines": {`while true do coroutine.wrap(function() coroutine.yield() end)() end`, script.DeadlineError},

	// Patterns.
	"catastrophic pattern":       {`return string.find(string.rep("a", 40), string.rep("a?", 40) .. string.rep("a", 41))`, script.DeadlineError},
	"nested repetition":          {`return string.match(string.rep("a", 5000), ".-.-.-.-.-b")`, script.DeadlineError},
	"pattern in gsub":            {`return (string.gsub(string.rep("a", 5000), ".-.-.-.-.-b", ""))`, script.DeadlineError},
	"pattern in gmatch":          {`for x in string.gmatch(string.rep("a", 5000), ".-.-.-.-.-b") do end`, script.DeadlineError},
	"pattern behind pcall":       {`while true do pcall(string.find, string.rep("a", 5000), ".-.-.-.-.-b") end`, script.DeadlineError},
	"quadratic balance":          {`return string.find(string.rep("(", 1e6), "%b()")`, script.DeadlineError},
	"pattern too complex":        {`return string.find("a", string.rep("a?", 1e5))`, script.ScriptError},
	"many captures":              {`return string.find("a", string.rep("(a", 40) .. string.rep(")", 40))`, script.ScriptError},
	"malformed pattern":          {`return string.find("a", "[a")`, script.ScriptError},
	"pattern ends in percent":    {`return string.find("a", "%")`, script.ScriptError},
	"backward reference to none": {`return string.find("a", "%1")`, script.ScriptError},

	// Strings that grow.
	"string.rep":             {`return #string.rep("x", 1e12)`, script.ScriptError},
	"method rep":             {`return #("x"):rep(1e12)`, script.ScriptError},
	"rep of huge":            {`return #("x"):rep(math.huge)`, script.ScriptError},
	"rep doubling":           {`local s = "x" while true do s = s:rep(2) end`, script.ScriptError},
	"concatenation":          {`local s = "x" while true do s = s .. s end`, script.ScriptError},
	"concatenation chain":    {`local s = string.rep("x", 1e7) return s .. s .. s`, script.ScriptError},
	"concatenation in code":  {`local function f(s) return (function() return s .. s end)() end local s = "x" while true do s = f(s) end`, script.ScriptError},
	"concat through _G":      {`_G["(concat)"] = function() return "" end local s = "x" while true do s = s .. s end`, script.ScriptError},
	"table.concat":           {`local s = string.rep("x", 1e6) local t = {} for i = 1, 1000 do t[i] = s end return #table.concat(t)`, script.ScriptError},
	"table.concat separator": {`local t = {} for i = 1, 1000 do t[i] = "" end return #table.concat(t, string.rep("x", 1e6))`, script.ScriptError},
	"gsub growth":            {`return #(string.gsub(string.rep("x", 1e6), "x", string.rep("y", 1e6)))`, script.ScriptError},
	"gsub capture growth":    {`return #(string.gsub(string.rep("x", 1e6), ".*", string.rep("%0", 1000)))`, script.ScriptError},
	"gsub function growth":   {`local s = string.rep("y", 1e6) return #(string.gsub(string.rep("x", 1e6), "x", function() return s end))`, script.ScriptError},
	"format width":           {`return string.format("%1000000000d", 1)`, script.ScriptError},
	"format precision":       {`return string.format("%.1000000000f", 1)`, script.ScriptError},
	"format growth":          {`local s = string.rep("x", 1e7) return #string.format("%s%s%s", s, s, s)`, script.ScriptError},
	"format missing value":   {`return string.format("%d")`, script.ScriptError},
	"json of a lot":          {`local s = ("[],"):rep(1e6) while true do tea.json.decode("[" .. s .. "1]") end`, script.DeadlineError},
	"json growth":            {`local t = {string.rep("x", 1e6)} for i = 1, 30 do t = {t, t} end return tea.json.encode(t)`, script.ScriptError},
	"result growth":          {`local t = {string.rep("x", 1e6)} for i = 1, 30 do t = {t, t} end return t`, script.ScriptError},

	// Depth.
	"recursion":              {`local function f() return 1 + f() end return f()`, script.ScriptError},
	"mutual recursion":       {`local g local function f() local x = g() return x end function g() local x = f() return x end return f()`, script.ScriptError},
	"index recursion":        {`local t = {} setmetatable(t, {__index = function(t, k) return t[k .. "x"] end}) return t.a`, script.ScriptError},
	"arithmetic recursion":   {`local t = {} setmetatable(t, {__add = function(a, b) return a + b end}) return t + t`, script.ScriptError},
	"tostring recursion":     {`local t = setmetatable({}, {__tostring = function(t) return tostring(t) end}) return tostring(t)`, script.ScriptError},
	"concat recursion":       {`local t = setmetatable({}, {__concat = function(a, b) return a .. b end}) return t .. "x"`, script.ScriptError},
	"call recursion":         {`local t = setmetatable({}, {__call = function(t) local x = t() return x end}) return t()`, script.ScriptError},
	"eq recursion":           {`local mt = {} mt.__eq = function(a, b) return a == b end local a, b = setmetatable({}, mt), setmetatable({}, mt) return a == b`, script.ScriptError},
	"gsub recursion":         {`local function f() return (string.gsub("a", "a", f)) end return f()`, script.ScriptError},
	"sort recursion":         {`local function f() table.sort({1, 2}, f) return true end return f()`, script.ScriptError},
	"pcall recursion":        {`local depth = 0 local function f() depth = depth + 1 local ok, e = pcall(f) if not ok then error(e, 0) end end f()`, script.ScriptError},
	"xpcall recursion":       {`local function f() return xpcall(f, f) end local ok = f() error("ended")`, script.ScriptError},
	"coroutine recursion":    {`local function f() coroutine.wrap(f)() end f()`, script.ScriptError},
	"resume of itself":       {`local co co = coroutine.create(function() return coroutine.resume(co) end) local _, ok, e = coroutine.resume(co) error(e)`, script.ScriptError},
	"index chain":            {`local t = {} for i = 1, 1000 do t = setmetatable({}, {__index = t}) end return t.x.y`, script.ScriptError},
	"cyclic index":           {`local t = {} setmetatable(t, {__index = t}) return t.x`, script.ScriptError},
	"yield outside":          {`coroutine.yield()`, script.ScriptError},
	"yield in a metamethod":  {`local t = setmetatable({}, {__index = function() coroutine.yield(1) return 2 end}) local co = coroutine.create(function() return t.x end) assert(coroutine.resume(co))`, script.ScriptError},
	"yield as the coroutine": {`local f = coroutine.wrap(coroutine.yield) f() f() f()`, script.ScriptError},

	"yield in an iterator": {`local co = coroutine.create(function() for x in function() coroutine.yield(1) end do end end) assert(coroutine.resume(co))`, script.ScriptError},

	// Tables and arguments.
	"table grows":         {`local t = {} local i = 0 while true do i = i + 1 t[i] = {i, i, i} end`, script.MemoryError},
	"hash grows":          {`local t = {} local i = 0 while true do i = i + 1 t["k" .. i] = i end`, script.MemoryError},
	"strings pile up":     {`local t = {} while true do t[#t + 1] = string.rep("x", 1e6) .. #t end`, script.MemoryError},
	"sparse tables":       {`local t = {} while true do local s = {} s[4e6] = 1 t[#t + 1] = s end`, script.MemoryError},
	"coroutines pile up":  {`local t = {} while true do local f = coroutine.wrap(function() coroutine.yield() end) f() t[#t + 1] = f end`, script.MemoryError},
	"closures pile up":    {`local f = function() end while true do local g = f f = function() return g end end`, script.MemoryError},
	"memory behind pcall": {`while true do pcall(function() local t = {} while true do t[#t + 1] = {} end end) end`, script.MemoryError},
	"unpack range":        {`return unpack({}, 1, 1e9)`, script.ScriptError},
	"unpack wide range":   {`return unpack({}, -1e300, 1e300)`, script.ScriptError},
	"byte range":          {`return string.byte(string.rep("x", 1e7), 1, -1)`, script.ScriptError},
	"insert far away":     {`table.insert({}, 1e15, 1)`, script.ScriptError},
	"concat far range":    {`return table.concat({}, ",", 1, 1e15)`, script.ScriptError},
	"endless varargs":     {`local function f(...) return f(1, ...) end return f()`, script.DeadlineError},
	"select out of range": {`return select(-1e300, 1)`, script.ScriptError},
	"char out of range":   {`return string.char(-1)`, script.ScriptError},
	"empty interval":      {`return math.random(0)`, script.ScriptError},
	"whole interval":      {`return math.random(-math.huge, math.huge), error("ended")`, script.ScriptError},

	// Ways out.
	"os":                    {`return os.execute("true")`, script.ScriptError},
	"io":                    {`return io.open("/etc/passwd")`, script.ScriptError},
	"debug":                 {`return debug.getregistry()`, script.ScriptError},
	"package":               {`return package.loaded`, script.ScriptError},
	"load":                  {`return load(function() return "return 1" end)()`, script.ScriptError},
	"loadstring":            {`return loadstring("return 1")()`, script.ScriptError},
	"dofile":                {`return dofile("/etc/passwd")`, script.ScriptError},
	"require":               {`return require("os")`, script.ScriptError},
	"getfenv":               {`return getfenv(0)`, script.ScriptError},
	"setfenv":               {`return setfenv(1, {})`, script.ScriptError},
	"string.dump":           {`return string.dump(function() end)`, script.ScriptError},
	"library through _G":    {`return _G._G._G.os.exit()`, script.ScriptError},
	"channel":               {`return channel.make()`, script.ScriptError},
	"collectgarbage":        {`return collectgarbage()`, script.ScriptError},
	"_printregs":            {`return _printregs()`, script.ScriptError},
	"library assignment":    {`string.rep = function() end`, script.ScriptError},
	"library rawset":        {`rawset(string, "rep", 1)`, script.ScriptError},
	"library insert":        {`table.insert(string, 1)`, script.ScriptError},
	"library remove":        {`table.remove(table)`, script.ScriptError},
	"library sort":          {`table.sort(math)`, script.ScriptError},
	"library metatable":     {`setmetatable(string, {})`, script.ScriptError},
	"tea assignment":        {`tea.json.encode = nil`, script.ScriptError},
	"string metatable":      {`getmetatable("").__index = nil`, script.ScriptError},
	"environment metatable": {`setmetatable(_G, {})`, script.ScriptError},
	"state metatable":       {`setmetatable(state, {})`, script.ScriptError},
	"library by pairs":      {`for k, v in pairs(string) do rawset(v, "x", 1) end`, script.ScriptError},
	"null metatable":        {`setmetatable(tea.null, {})`, script.ScriptError},
	"error without value":   {`error()`, script.ScriptError},
	"error with a function": {`error(print)`, script.ScriptError},
}

func TestHostileScripts(t *testing.T) {
	t.Parallel()
	const deadline, grace = 100 * time.Millisecond, time.Second
	quick := script.New(script.Options{Timeout: deadline})
	small := script.New(script.Options{Timeout: time.Minute, MemoryBytes: 24 << 20})
	plain := script.New(script.Options{Timeout: time.Minute})
	for name, tt := range hostile { //nolint:paralleltest // memory is measured for the whole process
		t.Run(name, func(t *testing.T) {
			rt := plain
			switch tt.want {
			case script.DeadlineError:
				rt = quick
			case script.MemoryError:
				rt = small
			}
			begin := time.Now()
			v, err := evalWith(t, rt, tt.text, script.Env{})
			var rerr *script.RunError
			if !errors.As(err, &rerr) || rerr.Kind != tt.want {
				t.Errorf("%s\ngot %v, %v; want kind %s", tt.text, v, err, tt.want)
			}
			if took := time.Since(begin); tt.want == script.DeadlineError && took > deadline+grace {
				t.Errorf("took %v", took)
			}
			healthy(t, rt)
		})
	}
}

// healthy checks that a runtime runs an ordinary script as if nothing had been.
func healthy(t *testing.T, rt *script.Runtime) {
	t.Helper()
	got, err := evalWith(t, rt, `
		local co = coroutine.wrap(function() coroutine.yield("c") end)
		local _, caught = pcall(error, "caught")
		return table.concat({string.rep("a", 2), ("b"):upper(), co(), caught, tostring(x), #tea.json.encode(state)}, ",")`,
		script.Env{State: object{"k": int64(1)}})
	if err != nil || got != "aa,B,c,caught,nil,7" {
		t.Errorf("the runtime is spoiled: %v, %v", got, err)
	}
}

func TestCancelEndsARunAtOnce(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	c, err := rt.Compile(script.Source{Name: "flow.yaml", Text: `print("started") while true do end`})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	env := script.Env{Log: func(slog.Level, string, map[string]any) { cancel() }}
	_, err = c.Run(ctx, env)
	var rerr *script.RunError
	if !errors.As(err, &rerr) || rerr.Kind != script.CanceledError || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	healthy(t, rt)
}

func TestContextDeadlineCounts(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	c, err := rt.Compile(script.Source{Name: "flow.yaml", Text: `while true do end`})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = c.Run(ctx, script.Env{})
	var rerr *script.RunError
	if !errors.As(err, &rerr) || rerr.Kind != script.DeadlineError || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestNothingLeaksBetweenRuns(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	for _, text := range []string{
		`leak = 1 _G.leak2 = 2 rawset(_G, "leak3", 3)`,
		`state.leak = 1 state.k = nil`,
		`pcall(function() string.leak = 1 end)`,
		`math.randomseed(99)`,
	} {
		if _, err := evalWith(t, rt, text, script.Env{State: object{"k": "v"}, Globals: object{"item": "secret"}}); err != nil {
			t.Fatal(err)
		}
		got, err := evalWith(t, rt, `return {leak == nil, leak2 == nil, leak3 == nil, state.leak == nil, state.k == nil, string.leak == nil, item == nil, math.random(1000)}`, script.Env{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i, ok := range got.(list)[:7] {
			if ok != true {
				t.Errorf("after %s: value %d leaked", text, i+1)
			}
		}
	}
}

func TestDeepSyntaxIsRefused(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	for name, text := range map[string]string{
		"not":       "return " + strings.Repeat("not ", 100_000) + "1",
		"tables":    "return " + strings.Repeat("{", 100_000) + strings.Repeat("}", 100_000),
		"functions": strings.Repeat("local f = function() ", 20_000) + strings.Repeat(" end", 20_000),
		"sum":       "return 1" + strings.Repeat(" + 1", 100_000),
		"concat":    `return "a"` + strings.Repeat(` .. "a"`, 100_000),
		"brackets":  "return " + strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000),
		"size":      strings.Repeat(" ", 2<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := rt.Compile(script.Source{Name: "f", Text: text})
			var serr *script.SyntaxError
			if name == "brackets" && err == nil {
				_, err = c.Run(t.Context(), script.Env{}) // brackets leave nothing behind
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.As(err, &serr) {
				t.Errorf("got %v", err)
			}
		})
	}
}
