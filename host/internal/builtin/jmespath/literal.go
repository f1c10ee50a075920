package jmespath

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"
)

// literals are the JSON literals of an expression. The parser would convert
// their numbers to float64, so each is replaced by a string that identifies it
// before parsing, and restored afterwards.
type literals struct {
	values []any
	shifts []shift
}

// shift is the difference of offsets after a replaced literal.
type shift struct{ from, by int }

// mark is the prefix of the string that replaces a literal; an expression
// cannot contain it by accident.
const mark = "\x00tea literal "

// markLiterals replaces every `literal` of the expression.
func markLiterals(expression string) (string, *literals, error) {
	lits := &literals{}
	var b strings.Builder
	for i := 0; i < len(expression); {
		c := expression[i]
		if c != '\'' && c != '"' && c != '`' {
			b.WriteByte(c)
			i++
			continue
		}
		end := closing(expression, i)
		if end < 0 {
			return "", nil, syntaxError(expression, i, "this "+string(c)+" is not closed")
		}
		text := expression[i : end+1]
		if c == '`' {
			v, err := literalValue(text[1 : len(text)-1])
			if err != nil {
				return "", nil, syntaxError(expression, i+1+offsetOf(err, len(text)-2), "the literal is not valid JSON: "+err.Error())
			}
			text = "`" + string(value.AppendString(nil, mark+strconv.Itoa(len(lits.values)))) + "`"
			lits.values = append(lits.values, v)
			lits.shifts = append(lits.shifts, shift{from: b.Len() + len(text), by: end + 1 - b.Len() - len(text)})
		}
		b.WriteString(text)
		i = end + 1
	}
	return b.String(), lits, nil
}

// closing returns the offset of the quote that matches the one at start.
func closing(s string, start int) int {
	for i := start + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[start]:
			return i
		}
	}
	return -1
}

func literalValue(text string) (any, error) {
	v, err := value.Decode([]byte(strings.ReplaceAll(text, "\\`", "`")))
	return value.Whole(v), err // JMESPath has one type of number
}

func offsetOf(err error, limit int) int {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return min(max(int(syntax.Offset)-1, 0), limit)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return limit
	}
	return 0
}

// unmark converts an offset in the marked text to one in the expression.
func (l *literals) unmark(offset int) int {
	by := 0
	for _, s := range l.shifts {
		if offset >= s.from {
			by = s.by
		}
	}
	return max(offset+by, 0)
}

// literal returns the value of a parsed literal.
func (c *checker) literal(parsed any) any {
	s, ok := parsed.(string)
	if !ok {
		return parsed
	}
	number, ok := strings.CutPrefix(s, mark)
	if !ok {
		return s
	}
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(c.literals) {
		return s
	}
	return c.literals[i]
}
