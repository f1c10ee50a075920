package value

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Append appends the JSON text of v to dst: keys sorted, no white space, whole
// floats with ".0". NaN, infinities, a json.Number that is not a number and
// types outside of the value model are errors; [From] converts other Go values
// to the model first. Invalid UTF-8 becomes U+FFFD.
func Append(dst []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case float64:
		return appendFloat(dst, v)
	case string:
		return AppendString(dst, v), nil
	case json.Number:
		if !isNumber(string(v)) {
			return dst, fmt.Errorf("%q is not a JSON number", string(v))
		}
		return append(dst, v...), nil
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = Append(dst, e); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case map[string]any:
		return appendObject(dst, v)
	default:
		return dst, fmt.Errorf("cannot encode a Go %T as JSON", v)
	}
}

// Encode is [Append] to a new slice.
func Encode(v any) ([]byte, error) { return Append(nil, v) }

func appendObject(dst []byte, m map[string]any) ([]byte, error) {
	var buf [16]string
	keys := buf[:0]
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, k), ':')
		var err error
		if dst, err = Append(dst, m[k]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// isNumber reports whether a text is a JSON number.
func isNumber(text string) bool {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	return text != "" && (text[0] == '-' || digit(text[0])) && digit(text[len(text)-1]) && json.Valid([]byte(text))
}

func appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, fmt.Errorf("%v has no JSON form", f)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e16) {
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	for _, c := range dst[start:] {
		if c == '.' || c == 'e' {
			return dst, nil
		}
	}
	return append(dst, ".0"...), nil
}

const hex = "0123456789abcdef"

// AppendString appends s as a JSON string. Only quotes, backslashes, control
// characters and U+2028/U+2029 are escaped; "<", ">" and "&" stay readable.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + size
			case r == '\u2028' || r == '\u2029':
				dst = append(append(dst, s[start:i]...), '\\', 'u', '2', '0', '2', hex[r&0xf])
				start = i + size
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// WholeRunes returns the length of a text without an incomplete character of
// UTF-8 at its end.
func WholeRunes(text string) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRuneInString(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// Brief returns v as JSON for a message, cut to about 60 bytes.
func Brief(v any) string {
	raw, err := Encode(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	if len(raw) > 60 {
		return strings.ToValidUTF8(string(raw[:57]), "") + "..."
	}
	return string(raw)
}
