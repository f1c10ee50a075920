package jsonactions

import (
	"bytes"
	"encoding/json"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// maxIndent bounds the spaces of one level.
const maxIndent = 16

// stringify encodes a value as JSON text: on one line, or with indent spaces
// for each level if indent is above 0.
func stringify(v any, indent int) (string, error) {
	raw, err := value.Encode(v)
	if err != nil {
		return "", tea.Errorf(tea.ValidationError, "write JSON: %w", err)
	}
	if indent == 0 {
		return string(raw), nil
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", strings.Repeat(" ", indent)); err != nil {
		return "", tea.Errorf(tea.InternalError, "indent JSON: %w", err)
	}
	return b.String(), nil
}
