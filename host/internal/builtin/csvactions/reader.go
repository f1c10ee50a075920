package csvactions

import (
	"fmt"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
)

// reader splits CSV text into records.
type reader struct {
	text      string
	delimiter rune
	pos       int
	line      int // of pos, from 1
	lineStart int // offset at which the line begins
}

func newReader(text string, delimiter rune) *reader {
	return &reader{text: strings.TrimPrefix(text, "\ufeff"), delimiter: delimiter, line: 1}
}

// next returns the next record and its first line; nil at the end. It skips
// empty lines.
func (r *reader) next() (record []string, line int, err error) {
	for r.pos < len(r.text) && r.lineBreak() {
	}
	if r.pos >= len(r.text) {
		return nil, 0, nil
	}
	line = r.line
	for {
		field, err := r.field()
		if err != nil {
			return nil, line, err
		}
		record = append(record, field)
		if strings.HasPrefix(r.text[r.pos:], string(r.delimiter)) {
			r.pos += utf8.RuneLen(r.delimiter)
			continue
		}
		if r.pos >= len(r.text) || r.lineBreak() {
			return record, line, nil
		}
		return nil, line, r.failure(r.pos, "after a closing quote, expected a delimiter or the end of the line; double a quote inside a field")
	}
}

// lineBreak consumes CRLF, LF or CR, if one is next.
func (r *reader) lineBreak() bool {
	switch {
	case strings.HasPrefix(r.text[r.pos:], "\r\n"):
		r.pos += 2
	case r.text[r.pos] == '\n', r.text[r.pos] == '\r':
		r.pos++
	default:
		return false
	}
	r.line++
	r.lineStart = r.pos
	return true
}

func (r *reader) field() (string, error) {
	if strings.HasPrefix(r.text[r.pos:], `"`) {
		return r.quoted()
	}
	rest := r.text[r.pos:]
	end := strings.IndexFunc(rest, func(c rune) bool { return c == r.delimiter || c == '\r' || c == '\n' })
	if end < 0 {
		end = len(rest)
	}
	if quote := strings.IndexByte(rest[:end], '"'); quote >= 0 {
		return "", r.failure(r.pos+quote, "a quote inside an unquoted field; quote the whole field and double the quote")
	}
	r.pos += end
	return rest[:end], nil
}

func (r *reader) quoted() (string, error) {
	opening := r.failure(r.pos, "this quote is not closed")
	r.pos++
	var b strings.Builder
	for {
		end := strings.IndexAny(r.text[r.pos:], "\"\r\n")
		if end < 0 {
			return "", opening
		}
		b.WriteString(r.text[r.pos : r.pos+end])
		r.pos += end
		if start := r.pos; r.lineBreak() {
			b.WriteString(r.text[start:r.pos])
			continue
		}
		r.pos++
		if !strings.HasPrefix(r.text[r.pos:], `"`) {
			return b.String(), nil
		}
		b.WriteByte('"')
		r.pos++
	}
}

func (r *reader) failure(at int, message string) error {
	column := utf8.RuneCountInString(r.text[r.lineStart:at]) + 1
	e := tea.Errorf(tea.ValidationError, "csv: line %d, column %d: %s", r.line, column, message)
	e.Details = map[string]any{"line": r.line, "column": column, "offset": at}
	return e
}

func lineFailure(line int, format string, args ...any) error {
	e := tea.Errorf(tea.ValidationError, "csv: line %d: %s", line, fmt.Sprintf(format, args...))
	e.Details = map[string]any{"line": line}
	return e
}
