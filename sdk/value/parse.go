package value

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxParsed is the maximum depth of values that parse supports; encoding/json
// refuses more than 10,000 levels.
const maxParsed = 1000

// parse reads JSON directly into the value model, in a third of the time that
// encoding/json takes to read numbers as text and replace them. ok is false for anything
// unusual, including syntax errors, which is left to encoding/json.
func parse(data []byte) (v any, ok bool) {
	p := parser{data: data}
	if v, ok = p.value(); !ok {
		return nil, false
	}
	p.space()
	return v, p.at == len(data)
}

type parser struct {
	data  []byte
	at    int
	depth int
	// keys are the keys of the objects so far, which often repeat.
	keys map[string]string
}

// space skips white space.
func (p *parser) space() {
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// skip skips white space and, if it is next, c.
func (p *parser) skip(c byte) bool {
	p.space()
	if p.at < len(p.data) && p.data[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) value() (any, bool) {
	p.space()
	if p.at == len(p.data) {
		return nil, false
	}
	switch p.data[p.at] {
	case '{':
		return p.object()
	case '[':
		return p.list()
	case '"':
		text, ok := p.text()
		if !ok {
			return nil, false
		}
		return string(text), true
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	}
	return p.number()
}

func (p *parser) word(word string) bool {
	if !bytes.HasPrefix(p.data[p.at:], []byte(word)) {
		return false
	}
	p.at += len(word)
	return true
}

func (p *parser) object() (any, bool) {
	p.at++
	if p.depth++; p.depth > maxParsed {
		return nil, false
	}
	object := map[string]any{}
	for more := !p.skip('}'); more; more = p.skip(',') {
		p.space()
		text, ok := p.text()
		if !ok || !p.skip(':') {
			return nil, false
		}
		key := p.key(text)
		if object[key], ok = p.value(); !ok {
			return nil, false
		}
	}
	p.depth--
	return object, len(object) == 0 && p.data[p.at-1] == '}' || p.skip('}')
}

// key returns a text as a string that is shared between equal keys.
func (p *parser) key(text []byte) string {
	if key, ok := p.keys[string(text)]; ok {
		return key
	}
	if p.keys == nil {
		p.keys = map[string]string{}
	}
	key := string(text)
	if len(p.keys) < 256 {
		p.keys[key] = key
	}
	return key
}

func (p *parser) list() (any, bool) {
	p.at++
	if p.depth++; p.depth > maxParsed {
		return nil, false
	}
	list := []any{}
	for more := !p.skip(']'); more; more = p.skip(',') {
		v, ok := p.value()
		if !ok {
			return nil, false
		}
		list = append(list, v)
	}
	p.depth--
	return list, len(list) == 0 && p.data[p.at-1] == ']' || p.skip(']')
}

// text reads a string. The bytes are valid until the next call.
func (p *parser) text() ([]byte, bool) {
	if p.at == len(p.data) || p.data[p.at] != '"' {
		return nil, false
	}
	rest := p.data[p.at+1:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return nil, false
	}
	ascii := true
	for _, c := range rest[:end] {
		if c < ' ' {
			return nil, false
		}
		if c == '\\' {
			return p.escaped()
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	p.at += end + 2
	return rest[:end], ascii || utf8.Valid(rest[:end])
}

// escapes are the characters that follow a backslash and their meaning.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads a string with escapes.
func (p *parser) escaped() ([]byte, bool) {
	var out []byte
	for i := p.at + 1; i < len(p.data); i++ {
		switch c := p.data[i]; {
		case c == '"':
			p.at = i + 1
			return out, utf8.Valid(out)
		case c < ' ':
			return nil, false
		case c != '\\':
			out = append(out, c)
			continue
		}
		i++
		if i == len(p.data) {
			return nil, false
		}
		if c := escapes[p.data[i]]; c != 0 {
			out = append(out, c)
			continue
		}
		r, ok := p.unicode(i)
		if !ok {
			return nil, false
		}
		i += 4
		if utf16.IsSurrogate(r) {
			low, ok := rune(0), i+2 < len(p.data) && p.data[i+1] == '\\'
			if ok {
				low, ok = p.unicode(i + 2)
			}
			if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
				return nil, false
			}
			i += 6
		}
		out = utf8.AppendRune(out, r)
	}
	return nil, false
}

// unicode reads uXXXX.
func (p *parser) unicode(at int) (rune, bool) {
	if at+5 > len(p.data) || p.data[at] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p.data[at+1:at+5]), 16, 16)
	return rune(n), err == nil
}

func (p *parser) number() (any, bool) {
	start := p.at
	if p.at < len(p.data) && p.data[p.at] == '-' {
		p.at++
	}
	first := p.at
	digits := p.digits()
	if digits == 0 || digits > 1 && p.data[first] == '0' {
		return nil, false
	}
	whole := true
	if p.at < len(p.data) && p.data[p.at] == '.' {
		p.at++
		if whole = false; p.digits() == 0 {
			return nil, false
		}
	}
	if p.at < len(p.data) && (p.data[p.at] == 'e' || p.data[p.at] == 'E') {
		if p.at++; p.at < len(p.data) && (p.data[p.at] == '+' || p.data[p.at] == '-') {
			p.at++
		}
		if whole = false; p.digits() == 0 {
			return nil, false
		}
	}
	text := p.data[start:p.at]
	if whole && digits < 19 {
		var n int64
		for _, c := range p.data[first:p.at] {
			n = 10*n + int64(c-'0')
		}
		if first > start {
			n = -n
		}
		return n, true
	}
	if whole {
		v, err := FromNumber(json.Number(text))
		return v, err == nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}

// digits skips digits and counts them.
func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.data) && '0' <= p.data[p.at] && p.data[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}
