package csvactions

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// lineEnd ends a record in RFC 4180.
const lineEnd = "\r\n"

// stringify formats rows as CSV text. Rows are all objects or all arrays.
func stringify(rows []any, headers []string, delimiter rune) (string, error) {
	if err := unique(headers, "headers"); err != nil {
		return "", err
	}
	if headers == nil {
		headers = unionOfKeys(rows)
	}
	w := &writer{delimiter: delimiter}
	if len(headers) > 0 {
		w.record(headers)
	}
	for i, row := range rows {
		fields, err := fieldsOf(row, headers)
		if err != nil {
			return "", tea.Errorf(tea.ValidationError, "csv: data[%d]: %s", i, tea.AsError(err).Message)
		}
		w.record(fields)
	}
	return w.String(), nil
}

// unionOfKeys returns the member names of all rows, sorted.
func unionOfKeys(rows []any) []string {
	keys := map[string]bool{}
	for _, row := range rows {
		object, _ := row.(map[string]any)
		for k := range object {
			keys[k] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

func fieldsOf(row any, headers []string) ([]string, error) {
	switch row := row.(type) {
	case map[string]any:
		if len(headers) == 0 {
			return nil, tea.Errorf(tea.ValidationError, "an object without members has no columns")
		}
		fields := make([]string, len(headers))
		for i, name := range headers {
			text, err := fieldOf(row[name])
			if err != nil {
				return nil, err
			}
			fields[i] = text
		}
		return fields, nil
	case []any:
		if len(headers) > 0 && len(row) != len(headers) {
			return nil, tea.Errorf(tea.ValidationError, "the row has %d fields, but there are %d headers", len(row), len(headers))
		}
		fields := make([]string, len(row))
		for i, e := range row {
			text, err := fieldOf(e)
			if err != nil {
				return nil, err
			}
			fields[i] = text
		}
		return fields, nil
	}
	return nil, tea.Errorf(tea.ValidationError, "expected an object or an array, got %s", value.TypeName(row))
}

// fieldOf formats a value as a field: a string unchanged, null empty, other
// values as JSON.
func fieldOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case json.Number:
		return string(v), nil
	}
	raw, err := value.Encode(v)
	return string(raw), err
}

// writer builds CSV text.
type writer struct {
	strings.Builder
	delimiter rune
}

func (w *writer) record(fields []string) {
	for i, field := range fields {
		if i > 0 {
			w.WriteRune(w.delimiter)
		}
		if len(fields) == 1 && field == "" || strings.ContainsAny(field, "\"\r\n") || strings.ContainsRune(field, w.delimiter) ||
			i == 0 && strings.HasPrefix(field, "\ufeff") {
			field = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
		}
		w.WriteString(field)
	}
	w.WriteString(lineEnd)
}
