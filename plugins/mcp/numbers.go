package mcp

import (
	"regexp"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/sdk/value"
)

// The SDK decodes structured content into float64, in which integers of more than
// 53 bits lose digits. If a message has such an integer, its structured content is
// replaced with a string of the JSON text before the SDK sees it.

// exactMark begins that string.
const exactMark = "\x00exact "

// longInteger matches digits that may be an integer of more than 53 bits.
var longInteger = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]{16}`) })

// structured returns the structured content of a result in the value model.
func structured(content any) (any, error) {
	if text, isText := content.(string); isText {
		if raw, ok := strings.CutPrefix(text, exactMark); ok {
			decoded, err := value.Decode([]byte(raw))
			return value.Whole(decoded), err
		}
	}
	return value.Whole(content), nil
}
