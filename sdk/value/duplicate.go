package value

import (
	"bytes"
	"encoding/json"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// DuplicateKey returns the path of the first key that appears twice in one object of a
// JSON text; "" if none does. v is the value of the text: [Decode] keeps the last one of
// such keys.
func DuplicateKey(text []byte, v any) string {
	if countMembers(text) == membersIn(v) {
		return ""
	}
	return duplicateKey(json.NewDecoder(bytes.NewReader(text)), "")
}

// countMembers returns the number of members of all objects in a JSON text: the
// number of colons outside of strings.
func countMembers(text []byte) int {
	n, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++
		case ':':
			if !quoted {
				n++
			}
		}
	}
	return n
}

// membersIn returns the number of members of all objects in a value.
func membersIn(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, e := range v {
			n += membersIn(e)
		}
	case []any:
		for _, e := range v {
			n += membersIn(e)
		}
	}
	return n
}

// duplicateKey returns the path of the first key of a valid JSON text that appears
// twice in one object; "" if none does.
func duplicateKey(text *json.Decoder, path string) string {
	start, err := text.Token()
	delim, ok := start.(json.Delim)
	if err != nil || !ok {
		return ""
	}
	seen := map[string]bool{}
	for i := 0; text.More(); i++ {
		inner := diag.Index(path, i)
		if delim == '{' {
			token, _ := text.Token() // the text is valid
			key, _ := token.(string)
			inner = diag.Key(path, key)
			if seen[key] {
				return inner
			}
			seen[key] = true
		}
		if found := duplicateKey(text, inner); found != "" {
			return found
		}
	}
	_, _ = text.Token() // the end of the object or the list
	return ""
}
