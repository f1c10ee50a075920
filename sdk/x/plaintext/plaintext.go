// Package plaintext shortens foreign texts for messages.
package plaintext

import (
	"fmt"

	"github.com/the-edge-agent/tea/sdk/value"
)

// Cut truncates a text to limit bytes between characters and marks it as truncated.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := value.WholeRunes(text[:limit])
	return fmt.Sprintf("%s... [cut off: %d of %d bytes shown]", text[:end], end, len(text))
}
