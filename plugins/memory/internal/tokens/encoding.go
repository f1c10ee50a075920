//go:build !wasm

package tokens

import (
	"reflect"
	"strings"
	"sync"

	"github.com/dlclark/regexp2/v2"
	"github.com/tiktoken-go/tokenizer/codec"
)

// split is the expression of cl100k_base that divides a text into words. The additional group makes regexp2 compile it.
// Without the group, the tokenizer uses generated code with a fault: of several line breaks with blanks between them,
// it ends the word at the first (tokenizer 0.10.0, regexp2 2.5.1).
const split = `(?:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)`

// encoding returns the tokenizer, with split in its unexported field.
var encoding = sync.OnceValue(func() *codec.Codec {
	c := codec.NewCl100kBase()
	if f := reflect.ValueOf(c).Elem().FieldByName("splitRegexp"); f.IsValid() && f.Type() == reflect.TypeFor[*regexp2.Regexp]() {
		*(**regexp2.Regexp)(f.Addr().UnsafePointer()) = regexp2.MustCompile(split, regexp2.None)
	}
	return c
})

// countSegment returns the number of tokens of a segment.
func countSegment(text string) int {
	n, err := encoding().Count(text)
	if err != nil {
		return len(text) // no token is shorter than a byte
	}
	return n
}

// tokensEnd returns the end of the first n tokens of a segment.
func tokensEnd(text string, n int) int {
	_, parts, err := encoding().Encode(text)
	if err != nil {
		return runeStart(text, min(n, len(text)))
	}
	end := len(strings.Join(parts[:min(n, len(parts))], ""))
	return runeStart(text, end) // invalid UTF-8 is longer in the tokens than in the text
}
