package script_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host/internal/script"
)

func TestHintsForOtherLanguages(t *testing.T) {
	t.Parallel()
	rt := script.New(script.Options{})
	for code, want := range map[string]string{
		"return {n = 7 // 2}":                       "without // of Lua 5.3: write math.floor(a / b)",
		"local x = 7\nreturn {n = x // 2}":          "without //",
		"return {n = 6 & 3}":                        "without & of Lua 5.3",
		"return {n = 6 | 3}":                        "without | of",
		"return {n = 6 ~ 3}":                        "without ~ of",
		"return {n = ~6}":                           "without ~ of",
		"return {n = 1 << 4}":                       "without << of Lua 5.3: write a * 2^b",
		"return {n = 16 >> 2}":                      "without >>",
		"local x <const> = 3\nreturn {n = x}":       "without the <const> of Lua 5.4: write local x = 1",
		"local x <close> = 3":                       "without the <close> of Lua 5.4",
		"if state.a != 1 then return {} end":        "without !=: write ~=",
		"if !state.a then return {} end":            "without !: write not",
		"if a && b then return {} end":              "without &&: write and",
		"if a || b then return {} end":              "without ||: write or",
		"local n = 1\nn += 1":                       "without +=: write x = x + 1",
		"return {n = 2 ** 3}":                       "without **: write a ^ b",
		"import json\nreturn json.loads(x)":         "JSON is tea.json",
		"def f(x):\n    return x + 1":               "looks like Python",
		"if state['a'] > 1:\n    return {'b':1}":    "looks like Python",
		"for x in items:\n    print(x)":             "looks like Python",
		"return {\"count\": len(state[\"a\"])}":     "looks like Python",
		"# count them\nn = 1":                       "looks like Python",
		"result = {'a': 1}":                         "looks like Python",
		"from math import pi":                       "looks like Python",
		"return [1, 2]":                             "looks like Python",
		"n = [x for x in list]":                     "looks like Python",
		"f = lambda x: x + 1":                       "looks like Python",
		"n = 1 if state.a else 2":                   "looks like Python",
		"local s = [[text]] local =":                "",
		"return {":                                  "add }: the { in line 1 is not closed",
		"local x\nif state.a then\n  return {}\n":   "add end: the if in line 2 is not closed",
		"for i = 1, 3 do\n  f(function()\n  end)\n": "add end: the for in line 1 is not closed",
		"while a do if b then end":                  "add end: the while in line 1 is not closed",
		"repeat\n  local x = 1":                     "add until: the repeat in line 1 is not closed",
		"local p = [[\n# Title\nif you see this:\n]]\nlocal q = 1\nprint(p)\nreturn {": "add }: the { in line 7 is not closed",
		"local x = (1": "add ): the ( in line 1 is not closed",
		"return 1 2":   "",
		"if a then\n  return {}\n\nreturn {y = 2}":                      "add end after return: the if in line 1 is not closed",
		"if a then\n  return {}\nelseif b then\n  return {}\nreturn {}": "add end after return: the if in line 1 is not closed",
		"for i = 1, 3 do\n  while true do break\n  x = 1\nend\nend":     "add end after break: the while in line 2 is not closed",
		"return {y = f(function() return 1 end)}\nlocal x = 1":          "return must be the last statement",
		"if a then return 1 end\nx = = 2":                               "",
		"return {y = 1}\nend":                                           "",
		"x = 'a' 'b' 'c' for":                                           "",
	} {
		_, err := rt.Compile(script.Source{Name: "t", Text: code})
		var syntax *script.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%q: %v, want a syntax error", code, err)
			continue
		}
		if !strings.Contains(syntax.Hint, want) || want == "" && syntax.Hint != "" {
			t.Errorf("%q: the hint is %q, want %q (%v)", code, syntax.Hint, want, err)
		}
		if want != "" && !strings.Contains(err.Error(), syntax.Hint) {
			t.Errorf("%q: the error %q lacks the hint", code, err)
		}
	}
}
