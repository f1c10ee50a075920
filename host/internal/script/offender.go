package script

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// positioned rewords a parser error and sets its position to the start of the
// offending token.
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

// offender finds the token of a parser error. The error itself has the position
// at which the token ends, or at which the parser stopped: the next line for an
// unterminated string.
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

// runeColumn converts a column in bytes to one in characters.
func runeColumn(text string, pos ast.Position) int {
	for range pos.Line - 1 {
		_, text, _ = strings.Cut(text, "\n")
	}
	return utf8.RuneCountInString(text[:min(max(pos.Column-1, 0), len(text))]) + 1
}
