package sqlite

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
)

// Declared types of columns for values that SQLite does not have: booleans are
// stored as 1 and 0, JSON and instants of rows in JSON as their texts.
const (
	boolean     = "BOOLEAN"
	jsonText    = "JSON_TEXT"
	instantText = "INSTANT_TEXT"
)

// toValue converts a value of the driver to the value model: an instant becomes
// text in RFC 3339, in UTC, a blob base64, an infinite number null.
func toValue(declared string, v any) (any, error) {
	switch v := v.(type) {
	case int64:
		if declared == boolean && (v == 0 || v == 1) {
			return v == 1, nil
		}
		return v, nil
	case nil, bool:
		return v, nil
	case float64:
		return sandbox.Float(v), nil
	case string:
		if declared == jsonText {
			return value.Decode([]byte(v))
		}
		if declared == instantText {
			if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
				return at.UTC().Format(time.RFC3339Nano), nil
			}
		}
		return strings.ToValidUTF8(v, "\ufffd"), nil
	case []byte:
		return base64.StdEncoding.EncodeToString(v), nil
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano), nil
	}
	return nil, fmt.Errorf("a %T cannot be returned to a workflow", v)
}
