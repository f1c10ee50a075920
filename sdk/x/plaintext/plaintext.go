// Package plaintext shortens texts of others for messages.
package plaintext

import (
	"fmt"

	"github.com/the-edge-agent/tea/sdk/value"
)

// Cut shortens a text to limit bytes at the end of a character and says so.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := value.WholeRunes(text[:limit])
	return fmt.Sprintf("%s... [cut off: %d of %d bytes shown]", text[:end], end, len(text))
}
