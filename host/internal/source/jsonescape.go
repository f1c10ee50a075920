package source

import (
	"encoding/json"
	"regexp"
	"strconv"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonEscape is an escape in JSON: a character as two halves of UTF-16, a half
// alone, or any other.
var jsonEscape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\\(?:ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|ud[89a-f][0-9a-f]{2}|.)`)
})

// withoutJSONEscapes rewrites the escapes that JSON has and the YAML parser
// does not know: a character as two halves of UTF-16 (\ud83d\ude00), and \/.
// Many writers use them. Lines stay where they are.
func withoutJSONEscapes(data []byte) []byte {
	if !json.Valid(data) {
		return data
	}
	return jsonEscape().ReplaceAllFunc(data, func(escape []byte) []byte {
		half := func(digits []byte) rune {
			n, _ := strconv.ParseUint(string(digits), 16, 32)
			return rune(n)
		}
		switch {
		case len(escape) == len(`\ud83d\ude00`):
			return utf8.AppendRune(nil, utf16.DecodeRune(half(escape[2:6]), half(escape[8:])))
		case len(escape) == len(`\ud83d`):
			return utf8.AppendRune(nil, utf8.RuneError)
		case escape[1] == '/':
			return escape[1:]
		}
		return escape
	})
}
