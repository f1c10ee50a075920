package jsonactions

import (
	"bytes"
	"iter"

	"github.com/the-edge-agent/tea/sdk/value"
)

// outside iterates over the bytes of JSON text that are outside strings,
// including the opening quotes.
func outside(text []byte) iter.Seq2[int, byte] {
	return func(yield func(at int, c byte) bool) {
		for at := 0; at < len(text); {
			c := text[at]
			if !yield(at, c) {
				return
			}
			if at++; c == '"' {
				at = stringEnd(text, at-1)
			}
		}
	}
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
	for at, c := range outside(out) {
		switch {
		case c == '/' && at+1 < len(out) && (out[at+1] == '/' || out[at+1] == '*'):
			blank(out[at:commentEnd(out, at)])
		case c == ',':
			comma = at
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
	for at, c := range outside(text) {
		switch c {
		case '[', '{':
			if depth++; depth > maxDepth {
				return -1
			}
		case ']', '}':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return -1
}
