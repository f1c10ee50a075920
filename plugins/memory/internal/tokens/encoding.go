//go:build !wasm

package tokens

import (
	"strings"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

var encoding = sync.OnceValue(codec.NewCl100kBase)

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
