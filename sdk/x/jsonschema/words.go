package jsonschema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"
)

// maxShown is the maximum size in bytes of a value in a message.
const maxShown = 60

// typeOf returns the JSON type of v; integer if it is a whole number.
func typeOf(v any) string {
	if value.IsNumber(v) {
		if value.IsInteger(v) {
			return "integer"
		}
		return "number"
	}
	return value.TypeName(v)
}

// describe returns the type of a value, and the value if it is short.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case []any:
		return "an array of " + count(len(v), "item")
	case map[string]any:
		return "an object"
	}
	return typeOf(v) + " " + quote(v)
}

// quote returns a value as JSON, shortened if needed.
func quote(v any) string {
	var text string
	switch v := v.(type) {
	case string:
		if len(v) > maxShown {
			return strconv.Quote(strings.ToValidUTF8(v[:maxShown], "")) + "..."
		}
		return strconv.Quote(v)
	case []any, map[string]any:
		if budget := 20 * maxShown; !isSmall(v, &budget) {
			return describe(v)
		}
		raw, err := value.Encode(v)
		if err != nil {
			return describe(v)
		}
		text = string(raw)
	case nil, bool:
		text = fmt.Sprint(v)
		if v == nil {
			text = "null"
		}
	default:
		text = value.FormatNumber(v)
	}
	return shorten(text, maxShown)
}

// isSmall reports whether encoding v takes up to about budget bytes: a large value is not
// encoded for a message that shows only its beginning.
func isSmall(v any, budget *int) bool {
	*budget--
	switch v := v.(type) {
	case string:
		*budget -= len(v)
	case json.Number:
		*budget -= len(v)
	case []any:
		for _, e := range v {
			if !isSmall(e, budget) {
				return false
			}
		}
	case map[string]any:
		for name, e := range v {
			*budget -= len(name)
			if !isSmall(e, budget) {
				return false
			}
		}
	}
	return *budget >= 0
}

// shorten cuts text to about limit bytes.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// orList returns words as "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func withHint(message, hint string) string {
	if hint == "" {
		return message
	}
	return message + "; " + hint
}
