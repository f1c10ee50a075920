package script

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// otherLanguage lists operators of newer versions and of other languages with their
// replacements.
var otherLanguage = []struct{ spelling, instead string }{
	{"//", newer + "math.floor(a / b)"},
	{"<<", newer + "a * 2^b"},
	{">>", newer + "math.floor(a / 2^b)"},
	{"&&", older + "and"},
	{"||", older + "or"},
	{"&", newer + "arithmetic: math.floor(a / 2^n) % 2 is bit n"},
	{"|", newer + "arithmetic: math.floor(a / 2^n) % 2 is bit n"},
	{"~", newer + "arithmetic: math.floor(a / 2^n) % 2 is bit n"},
	{"!=", older + "~="},
	{"!", older + "not"},
	{"**", older + "a ^ b"},
	{"+=", older + "x = x + 1"},
	{"-=", older + "x = x - 1"},
	{"*=", older + "x = x * 2"},
	{"/=", older + "x = x / 2"},
}

const (
	newer = " of Lua 5.3: write "
	older = ": write "
)

// attribute matches the attribute of a local variable in Lua 5.4.
var attribute = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<\s*(const|close)\s*>`) })

// pythonLine matches a line of Python that is not valid Lua.
var pythonLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*(def \w+\s*\(.*:|class \w+.*:|import \w+|from [\w.]+ import |(if|elif|for|while|with|except|try|else|finally)\b[^\n]*:\s*(#.*)?$|return \{\s*["'][^"'\n]*["']\s*:|print\s+\w)|\w\s*=\s*\{\s*["'][^"'\n]*["']\s*:|(?:\breturn|=)\s*\[[^\[=]|\blambda\b.*:|=.*\bif\b.*\belse\b`)
})

// pythonLines is the number of lines before an error that are searched for Python: Lua
// reports a colon at the end of a line as an error on the next one.
const pythonLines = 2

// hintFor returns a hint for a syntax error at a byte offset of text, if the code is
// another version of Lua or Python.
func hintFor(text string, at int) string {
	start := strings.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := strings.Cut(text[start:], "\n")
	before := start
	for range pythonLines {
		before = strings.LastIndexByte(text[:max(before-1, 0)], '\n') + 1
	}
	if pythonLine().MatchString(text[before:start+len(line)]) || strings.HasPrefix(strings.TrimSpace(line), "#") {
		return "this looks like Python; the language is Lua: local x = 1, if a then ... end, for _, v in ipairs(list) do ... end, return {key = value}, -- comment; JSON is tea.json"
	}
	if m := attribute().FindStringIndex(line); m != nil && m[0] <= at-start+1 && at-start <= m[1] {
		return "the language is Lua 5.1, without the " + line[m[0]:m[1]] + " of Lua 5.4: write local x = 1"
	}
	for _, o := range otherLanguage {
		// The error is at the operator, or at the second character of one whose
		// first character is an operator of Lua.
		for back := range len(o.spelling) {
			if at-back >= start && strings.HasPrefix(text[at-back:], o.spelling) {
				return "the language is Lua 5.1, without " + o.spelling + o.instead
			}
		}
	}
	return ""
}

// statement matches a line that begins with a statement.
var statement = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(\w+[.:\[(]|\w+\s*[=,(]|(local|return|if|for|while|repeat|function|do|break)\b)`)
})

// hintOfBlocks returns a hint for a syntax error at a byte offset: for a script that ends
// too early, the innermost block that is not closed; for a statement after return or
// break, the block that they end.
func hintOfBlocks(src Source, at int, atEnd bool) string {
	text := src.Text
	if !atEnd {
		start := strings.LastIndexByte(text[:at], '\n') + 1
		if strings.TrimSpace(text[start:at]) != "" || !statement().MatchString(text[start:]) {
			return ""
		}
		text = text[:start]
	}
	last := innermost(text, src.Name)
	line := last.line + max(src.Line, 1) - 1
	switch {
	case atEnd && last.word != "":
		return fmt.Sprintf("add %s: the %s in line %d is not closed", last.end, last.word, line)
	case atEnd || last.ended == "":
		return ""
	case last.word == "":
		return last.ended + " must be the last statement"
	}
	return fmt.Sprintf("add %s after %s: the %s in line %d is not closed", last.end, last.ended, last.word, line)
}

// openBlock is a block or bracket whose end is missing; without a word, the script itself.
type openBlock struct {
	word, end string
	line      int
	// ended is the return or break at the end of the block.
	ended string
}

// innermost returns the innermost block that is open at the end of a text.
func innermost(text, name string) openBlock {
	open := []openBlock{{}}
	var loop ast.Token // its do is still to come
	scanner, lexer := parse.NewScanner(strings.NewReader(text), name), &parse.Lexer{}
	for {
		token, err := scanner.Scan(lexer)
		last := &open[len(open)-1]
		if err != nil || token.Type == parse.EOF {
			return *last
		}
		lexer.PrevTokenType = token.Type
		switch token.Type {
		case parse.TReturn, parse.TBreak:
			last.ended = token.Str
		case parse.TElse, parse.TElseIf:
			last.ended = ""
		case parse.TFor, parse.TWhile:
			loop = token
		case parse.TDo:
			if loop.Type != 0 {
				token, loop = loop, ast.Token{}
			}
			fallthrough
		case parse.TFunction, parse.TIf:
			open = append(open, openBlock{word: token.Str, end: "end", line: token.Pos.Line})
		case parse.TRepeat:
			open = append(open, openBlock{word: token.Str, end: "until", line: token.Pos.Line})
		case '{':
			open = append(open, openBlock{word: "{", end: "}", line: token.Pos.Line})
		case '(':
			open = append(open, openBlock{word: "(", end: ")", line: token.Pos.Line})
		case parse.TEnd, parse.TUntil, '}', ')':
			if len(open) > 1 {
				open = open[:len(open)-1]
			}
		}
	}
}
