package script

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// positioned words a parser's error and puts it where the token begins that it
// is about.
func positioned(src Source, prefix string, perr *parse.Error) *SyntaxError {
	text := prefix + src.Text
	out := &SyntaxError{File: src.Name, Message: perr.Message}
	if perr.Token != "" {
		out.Message = fmt.Sprintf("%s near %q", perr.Message, clip(perr.Token, 40))
	}
	pos := offender(text, perr)
	if pos.Line == parse.EOF {
		out.Message = "unexpected end of the script"
		text = strings.TrimRight(text, " \t\r\n")
		pos.Line = strings.Count(text, "\n") + 1
		pos.Column = len(text) - strings.LastIndexByte(text, '\n')
	}
	pos.Column = runeColumn(text, pos)
	if pos.Line == 1 {
		pos.Column -= len(prefix)
	}
	out.Line = pos.Line + max(src.Line, 1) - 1
	out.Column = max(pos.Column, 1) + max(src.Column-1, 0)
	return out
}

// offender finds the token that a parser's error is about. The error itself
// has the place where the token ends, or where the parser gave up reading it:
// that is the next line for a string without an end.
func offender(text string, perr *parse.Error) ast.Position {
	scanner := parse.NewScanner(strings.NewReader(text), "")
	lexer := &parse.Lexer{}
	for {
		tok, err := scanner.Scan(lexer)
		at := scanner.Pos
		if err != nil || tok.Type == parse.EOF || samePlace(at, perr.Pos) || samePlace(tok.Pos, perr.Pos) {
			return tok.Pos
		}
		lexer.PrevTokenType = tok.Type
	}
}

func samePlace(a, b ast.Position) bool { return a.Line == b.Line && a.Column == b.Column }

// runeColumn counts a column, which the parser has in bytes, in letters.
func runeColumn(text string, pos ast.Position) int {
	for range pos.Line - 1 {
		_, text, _ = strings.Cut(text, "\n")
	}
	return utf8.RuneCountInString(text[:min(max(pos.Column-1, 0), len(text))]) + 1
}
