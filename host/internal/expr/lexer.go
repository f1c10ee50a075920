package expr

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenEOF tokenKind = iota
	tokenText
	tokenOutputOpen  // {{
	tokenOutputClose // }}
	tokenBlockOpen   // {%
	tokenBlockClose  // %}
	tokenName
	tokenNumber
	tokenString
	tokenOperator
)

// token is one token of a template: text is the text as written, except a
// string without quotes and escapes; value is the value of a number. pos is a
// byte offset.
type token struct {
	kind  tokenKind
	text  string
	value any
	pos   int
}

// maxTokens bounds the size of a template's tree, and with it the depth of
// the recursion over it.
const maxTokens = 20_000

// lexer splits a template into tokens. It applies white space control ({%- and
// -%}) and handles comments and raw blocks.
type lexer struct {
	text     string
	pos      int
	tokens   []token
	brackets []byte // the expected closing brackets
	trimNext bool   // the last tag ended with "-"
}

// lexTemplate returns the tokens of a text with tags.
func lexTemplate(text string) []token {
	l := &lexer{text: text}
	for l.pos < len(text) {
		open := nextTag(text, l.pos)
		if open < 0 {
			l.addText(text[l.pos:], false)
			l.pos = len(text)
			break
		}
		strip := open+2 < len(text) && text[open+2] == '-'
		l.addText(text[l.pos:open], strip)
		l.pos = open
		l.tag()
		if len(l.tokens) > maxTokens {
			panic(l.errorf(open, "the template is too long: more than %d tokens", maxTokens))
		}
	}
	return append(l.tokens, token{kind: tokenEOF, pos: len(text)})
}

// lexExpression returns the tokens of an expression without braces.
func lexExpression(text string) []token {
	l := &lexer{text: text}
	l.code("")
	return append(l.tokens, token{kind: tokenEOF, pos: len(text)})
}

// nextTag returns the offset of the next {{, {% or {#, or -1.
func nextTag(text string, from int) int {
	for i := from; ; i++ {
		n := strings.IndexByte(text[i:], '{')
		if n < 0 || i+n+1 >= len(text) {
			return -1
		}
		i += n
		switch text[i+1] {
		case '{', '%', '#':
			return i
		}
	}
}

func (l *lexer) errorf(pos int, format string, args ...any) *SyntaxError {
	line, column := lineColumn(l.text, pos)
	return &SyntaxError{Line: line, Column: column, Message: fmt.Sprintf(format, args...)}
}

func (l *lexer) add(kind tokenKind, text string, pos int) {
	l.tokens = append(l.tokens, token{kind: kind, text: text, pos: pos})
}

func (l *lexer) addText(text string, stripRight bool) {
	if l.trimNext {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		l.trimNext = false
	}
	if stripRight {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	}
	if text != "" {
		l.add(tokenText, text, l.pos)
	}
}

// tag scans one tag from its opening braces to its closing ones.
func (l *lexer) tag() {
	start := l.pos
	l.pos += 2
	if l.text[start+1] == '#' {
		end := strings.Index(l.text[l.pos:], "#}")
		if end < 0 {
			panic(l.errorf(start, "the comment {# is not closed: #} is missing"))
		}
		l.trimNext = end > 0 && l.text[l.pos+end-1] == '-'
		l.pos += end + 2
		return
	}
	if l.pos < len(l.text) && (l.text[l.pos] == '-' || l.text[l.pos] == '+') {
		l.pos++
	}
	if l.text[start+1] == '{' {
		l.add(tokenOutputOpen, "{{", start)
		l.code("}}")
		return
	}
	if l.raw(start) {
		return
	}
	l.add(tokenBlockOpen, "{%", start)
	l.code("%}")
}

// raw scans {% raw %} ... {% endraw %} as text.
func (l *lexer) raw(start int) bool {
	body, strip, ok := tagNamed(l.text[l.pos:], "raw")
	if !ok {
		return false
	}
	body += l.pos
	for i := body; ; {
		n := strings.Index(l.text[i:], "{%")
		if n < 0 {
			panic(l.errorf(start, "{%% raw %%} is not closed: {%% endraw %%} is missing"))
		}
		inner := i + n + 2
		stripEnd := strings.HasPrefix(l.text[inner:], "-")
		if stripEnd {
			inner++
		}
		end, stripAfter, ok := tagNamed(l.text[inner:], "endraw")
		if !ok {
			i = inner
			continue
		}
		l.pos, l.trimNext = body, strip
		l.addText(l.text[body:i+n], stripEnd)
		l.pos, l.trimNext = inner+end, stripAfter
		return true
	}
}

// tagNamed reports whether code begins with `name %}`, where it ends, and
// whether it has a "-".
func tagNamed(code, name string) (end int, strip, ok bool) {
	rest, found := strings.CutPrefix(strings.TrimLeftFunc(code, unicode.IsSpace), name)
	if !found {
		return 0, false, false
	}
	rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	trimmed, strip := strings.CutPrefix(rest, "-")
	if !strings.HasPrefix(trimmed, "%}") {
		return 0, false, false
	}
	return len(code) - len(trimmed) + 2, strip, true
}

// code scans tokens up to the closing braces, or to the end of the text if
// closer is empty.
func (l *lexer) code(closer string) {
	start := len(l.tokens) - 1
	l.brackets = l.brackets[:0]
	for {
		for l.pos < len(l.text) && isSpace(l.text[l.pos]) {
			l.pos++
		}
		if l.pos >= len(l.text) {
			l.atEnd(closer, start)
			return
		}
		if closer != "" && len(l.brackets) == 0 && l.closed(closer) {
			return
		}
		l.next()
		if len(l.tokens) > maxTokens {
			panic(l.errorf(l.pos, "the expression is too long: more than %d tokens", maxTokens))
		}
	}
}

func (l *lexer) atEnd(closer string, start int) {
	if closer != "" {
		open := l.tokens[start]
		panic(l.errorf(open.pos, "%s is not closed: %s is missing", open.text, closer))
	}
	if n := len(l.brackets); n > 0 {
		panic(l.errorf(l.pos, "%q is missing at the end", string(l.brackets[n-1])))
	}
}

// closed consumes the closing braces if they are next.
func (l *lexer) closed(closer string) bool {
	rest := l.text[l.pos:]
	strip := rest[0] == '-'
	if strip || rest[0] == '+' && closer == "%}" {
		rest = rest[1:]
	}
	if !strings.HasPrefix(rest, closer) {
		return false
	}
	kind := tokenOutputClose
	if closer == "%}" {
		kind = tokenBlockClose
	}
	l.add(kind, closer, l.pos)
	l.pos = len(l.text) - len(rest) + 2
	l.trimNext = strip
	return true
}

// next scans one token of code.
func (l *lexer) next() {
	c := l.text[l.pos]
	switch {
	case c == '"' || c == '\'':
		l.str(c)
		return
	case isDigit(c):
		l.number()
		return
	}
	if r, size := utf8.DecodeRuneInString(l.text[l.pos:]); r == '_' || unicode.IsLetter(r) {
		start := l.pos
		for isWord(r) {
			l.pos += size
			r, size = utf8.DecodeRuneInString(l.text[l.pos:])
		}
		l.add(tokenName, l.text[start:l.pos], start)
		return
	}
	l.operator()
}

func (l *lexer) operator() {
	rest := l.text[l.pos:]
	if len(rest) > 1 {
		switch rest[:2] {
		case "**", "//", "==", "!=", "<=", ">=", "&&", "||":
			l.add(tokenOperator, rest[:2], l.pos)
			l.pos += 2
			return
		}
	}
	c := rest[0]
	switch c {
	case '(':
		l.brackets = append(l.brackets, ')')
	case '[':
		l.brackets = append(l.brackets, ']')
	case '{':
		l.brackets = append(l.brackets, '}')
	case ')', ']', '}':
		n := len(l.brackets)
		if n == 0 {
			err := l.errorf(l.pos, "unexpected %q: no bracket is open", rest[:1])
			if c == '}' {
				err.Hint = "an expression ends with }}"
			}
			panic(err)
		}
		if l.brackets[n-1] != c {
			panic(l.errorf(l.pos, "unexpected %q: %q is missing before it", rest[:1], string(l.brackets[n-1])))
		}
		l.brackets = l.brackets[:n-1]
	case '+', '-', '*', '/', '%', '~', '<', '>', '=', '.', ',', ':', '|', '!':
	default:
		r, _ := utf8.DecodeRuneInString(rest)
		panic(l.errorf(l.pos, "unexpected character %q", r))
	}
	l.add(tokenOperator, rest[:1], l.pos)
	l.pos++
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isWord(r rune) bool  { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
