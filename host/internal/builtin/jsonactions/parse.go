package jsonactions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

const (
	// maxText bounds the text in bytes.
	maxText = 64 << 20
	// maxDepth bounds the nesting of lists and objects.
	maxDepth = 1000
)

// Parse parses one value of strict JSON, in which no object has a key twice. Failures
// are validation errors with line, column and byte offset, or the key, in their details.
func Parse(text []byte) (any, error) { return parse(text, true) }

// parse is [Parse], or a lenient parser if strict is false.
func parse(text []byte, strict bool) (any, error) {
	if len(text) > maxText {
		return nil, tea.Errorf(tea.ValidationError, "the text has %d bytes; the limit is %d", len(text), maxText)
	}
	if at := invalidUTF8(text); at >= 0 {
		return nil, faultAt(text, at, "the text is not valid UTF-8 here")
	}
	body := bytes.TrimPrefix(text, []byte("\ufeff"))
	skipped := len(text) - len(body)
	if strict {
		v, err := decode(text, body, skipped)
		if err != nil {
			return nil, err
		}
		if key := value.DuplicateKey(body, v); key != "" {
			e := tea.Errorf(tea.ValidationError, "invalid JSON: the key %q appears twice", key)
			e.Details = map[string]any{"key": key}
			return nil, e
		}
		return v, nil
	}
	v, err := decode(text, plain(body), skipped)
	if err == nil {
		return v, nil
	}
	if found, ok := embedded(body); ok {
		return found, nil
	}
	return nil, err
}

// decode parses body, which begins at an offset in the whole text.
func decode(text, body []byte, offset int) (any, error) {
	if at := tooDeep(body); at >= 0 {
		return nil, faultAt(text, offset+at, fmt.Sprintf("lists and objects are nested more than %d levels deep", maxDepth))
	}
	v, err := value.Decode(body)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return v, nil
	case errors.As(err, &syntax):
		// The offset includes the wrong byte.
		return nil, faultAt(text, offset+int(syntax.Offset)-1, syntax.Error())
	case errors.Is(err, io.EOF):
		return nil, faultAt(text, len(text), "the text has no value")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, faultAt(text, len(text), "the text ends in the middle of a value")
	}
	if end := valueEnd(body); end < len(body) {
		return nil, faultAt(text, offset+end, "there is more text after the value")
	}
	return nil, faultAt(text, offset+tooLarge(body), err.Error())
}

// tooLarge returns the offset of the first number that is out of range.
func tooLarge(body []byte) int {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			return 0
		}
		if number, ok := token.(json.Number); ok {
			if _, err := value.FromNumber(number); err != nil {
				return int(dec.InputOffset()) - len(number)
			}
		}
	}
}

// valueEnd returns the offset after the first value of body.
func valueEnd(body []byte) int {
	dec := json.NewDecoder(bytes.NewReader(body))
	var v json.RawMessage
	if dec.Decode(&v) != nil {
		return len(body)
	}
	end := int(dec.InputOffset())
	return end + len(body[end:]) - len(bytes.TrimLeft(body[end:], " \t\r\n"))
}

// faultAt returns a validation error with its position in the text.
func faultAt(text []byte, offset int, message string) error {
	offset = min(max(offset, 0), len(text))
	line := bytes.Count(text[:offset], []byte("\n")) + 1
	column := utf8.RuneCount(text[bytes.LastIndexByte(text[:offset], '\n')+1:offset]) + 1
	e := tea.Errorf(tea.ValidationError, "invalid JSON at line %d, column %d: %s", line, column, message)
	e.Details = map[string]any{"line": line, "column": column, "offset": offset}
	return e
}

func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// tooDeep returns the offset of the bracket that is nested too deep, or -1.
func tooDeep(body []byte) int {
	depth := 0
	for at, c := range outside(body) {
		switch c {
		case '[', '{':
			if depth++; depth > maxDepth {
				return at
			}
		case ']', '}':
			depth--
		}
	}
	return -1
}
