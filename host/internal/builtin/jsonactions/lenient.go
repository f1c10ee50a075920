package jsonactions

import (
	"bytes"

	"github.com/the-edge-agent/tea/sdk/value"
)

// scanner iterates over the bytes of JSON text that are outside strings.
type scanner struct {
	text []byte
	pos  int
	// started reports that pos is a result of next.
	started bool
}

// next returns the next byte outside strings; it returns the opening quote of a
// string and skips the rest.
func (s *scanner) next() bool {
	if s.started {
		if s.text[s.pos] == '"' {
			s.pos = stringEnd(s.text, s.pos)
		} else {
			s.pos++
		}
	}
	s.started = true
	return s.pos < len(s.text)
}

// stringEnd returns the offset after the string that begins at start.
func stringEnd(text []byte, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// plain replaces comments and trailing commas by white space, so that every
// other byte keeps its offset.
func plain(text []byte) []byte {
	out := bytes.Clone(text)
	comma := -1 // the last comma with only white space after it
	for s := (scanner{text: out}); s.next(); {
		switch c := out[s.pos]; {
		case c == '/' && s.pos+1 < len(out) && (out[s.pos+1] == '/' || out[s.pos+1] == '*'):
			blank(out[s.pos:commentEnd(out, s.pos)])
		case c == ',':
			comma = s.pos
		case (c == ']' || c == '}') && comma >= 0:
			out[comma] = ' '
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return out
}

func commentEnd(text []byte, start int) int {
	closing, extra := []byte("\n"), 0
	if text[start+1] == '*' {
		closing, extra = []byte("*/"), 2
	}
	end := bytes.Index(text[start+2:], closing)
	if end < 0 {
		return len(text)
	}
	return start + 2 + end + extra
}

func blank(text []byte) {
	for i, c := range text {
		if c != '\n' && c != '\r' {
			text[i] = ' '
		}
	}
}

// maxStarts bounds the brackets of a text that are tried as the start of a
// value.
const maxStarts = 32

// embedded finds a JSON list or object inside other text, such as a model's
// answer: first in a code fence, then the first complete one.
func embedded(text []byte) (any, bool) {
	if body, ok := fenced(text); ok {
		body = plain(body)
		if v, err := value.Decode(body); err == nil && tooDeep(body) < 0 {
			return v, true
		}
	}
	for range maxStarts {
		next := bytes.IndexAny(text, "[{")
		if next < 0 {
			break
		}
		body := plain(text[next:])
		if end := bracketEnd(body); end >= 0 {
			if v, err := value.Decode(body[:end]); err == nil {
				return v, true
			}
		}
		text = text[next+1:]
	}
	return nil, false
}

// fenced returns the content of the first code fence.
func fenced(text []byte) ([]byte, bool) {
	fence := []byte("```")
	_, rest, ok := bytes.Cut(text, fence)
	if !ok {
		return nil, false
	}
	_, rest, ok = bytes.Cut(rest, []byte("\n")) // the name of the language
	if !ok {
		return nil, false
	}
	body, _, ok := bytes.Cut(rest, fence)
	return body, ok
}

// bracketEnd returns the offset after the bracket that closes the first one of
// text, or -1.
func bracketEnd(text []byte) int {
	depth := 0
	for s := (scanner{text: text}); s.next(); {
		switch text[s.pos] {
		case '[', '{':
			if depth++; depth > maxDepth {
				return -1
			}
		case ']', '}':
			if depth--; depth == 0 {
				return s.pos + 1
			}
		}
	}
	return -1
}
