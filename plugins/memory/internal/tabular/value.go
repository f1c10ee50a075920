package tabular

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

const (
	// timestampText is how SQLite keeps an instant, always in UTC: such texts
	// have the order of the instants.
	timestampText = "2006-01-02T15:04:05.000000Z"
	dateText      = "2006-01-02"
	// exact is up to where a float has every whole number.
	exact = 1 << 53
)

// timestampForms are the texts that a timestamp may have; without a zone it
// is in UTC.
var timestampForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", dateText}

// parse takes a JSON value for the column: nil, a string, int64, float64,
// bool, store.Decimal or time.Time.
func (c Column) parse(raw json.RawMessage) (any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		if !c.Nullable {
			return nil, tea.Errorf(tea.ValidationError, "column %q must have a value", c.Name)
		}
		return nil, nil
	}
	v, ok := c.convert(raw)
	if !ok {
		return nil, tea.Errorf(tea.ValidationError, "column %q takes %s, not %.60s", c.Name, c.Type.wants(), raw)
	}
	return v, nil
}

func (t Type) wants() string {
	if digits, scale, ok := t.decimal(); ok {
		return fmt.Sprintf("a number with at most %d digits before and %d after the point", digits-scale, scale)
	}
	return map[Type]string{
		String: "a string", Int: "a whole number of 64 bits", Float: "a number of 64 bits", Bool: "true or false",
		Timestamp: `a time like "2026-03-01T12:00:00.25Z"`, Date: `a date like "2026-03-01"`, JSON: "any JSON",
	}[t]
}

func (c Column) convert(raw json.RawMessage) (any, bool) {
	if digits, scale, ok := c.Type.decimal(); ok {
		return parseDecimal(raw, digits, scale)
	}
	switch c.Type {
	case String:
		return text(raw)
	case Int:
		return whole(string(raw))
	case Float:
		if raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
			return nil, false
		}
		f, err := strconv.ParseFloat(string(raw), 64)
		return f + 0, err == nil // + 0 makes 0 of -0, which is the same key
	case Bool:
		return string(raw) == "true", string(raw) == "true" || string(raw) == "false"
	case Timestamp:
		return instant(raw, timestampForms...)
	case Date:
		return instant(raw, dateText)
	default:
		var compact bytes.Buffer
		err := json.Compact(&compact, raw)
		return compact.String(), err == nil
	}
}

func text(raw json.RawMessage) (string, bool) {
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// whole reads an integer exactly. 5.0 and 5e3 are integers too.
func whole(number string) (int64, bool) {
	if integer, fraction, ok := strings.Cut(number, "."); ok && strings.Trim(fraction, "0") == "" {
		number = integer
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return n, number[0] != '+'
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !strings.ContainsAny(number, ".eE") || f != math.Trunc(f) || math.Abs(f) > exact || (f == 0 && strings.ContainsAny(number, "123456789")) {
		return 0, false
	}
	return int64(f), true
}

// instant reads a time to the microsecond.
func instant(raw json.RawMessage, forms ...string) (time.Time, bool) {
	s, ok := text(raw)
	if !ok {
		return time.Time{}, false
	}
	for _, form := range forms {
		t, err := time.Parse(form, s)
		if err != nil {
			continue
		}
		t = t.UTC().Truncate(time.Microsecond)
		return t, t.Year() >= 1 && t.Year() <= 9999
	}
	return time.Time{}, false
}

// stored is a value as the database's bulk insert takes it.
func (c Column) stored(dialect store.Dialect, v any) any {
	switch v := v.(type) {
	case time.Time:
		if dialect == store.SQLite {
			return c.timeText(v)
		}
	case store.Decimal:
		if dialect == store.SQLite {
			return decimalNumber(v)
		}
	}
	return v
}

// bound is a value as it is bound to a parameter.
func (c Column) bound(dialect store.Dialect, v any) any {
	if d, ok := v.(store.Decimal); ok && dialect == store.SQLite {
		return decimalNumber(d)
	}
	return c.plain(v)
}

// plain is a value without the types of this package, the same on each
// database.
func (c Column) plain(v any) any {
	switch v := v.(type) {
	case time.Time:
		return c.timeText(v)
	case store.Decimal:
		return v.String()
	}
	return v
}

// parameter is where bound goes in a statement.
func (c Column) parameter(dialect store.Dialect) string {
	if dialect == store.DuckDB {
		return "CAST(? AS " + c.Type.sql(dialect) + ")"
	}
	return "?"
}

func (c Column) timeText(t time.Time) string {
	if c.Type == Date {
		return t.Format(dateText)
	}
	return t.Format(timestampText)
}

// keyOf is the key of a row: its values as a JSON array.
func keyOf(columns []Column, values []any) (string, error) {
	parts := make([]any, len(values))
	for i, v := range values {
		parts[i] = columns[i].plain(v)
	}
	key, err := json.Marshal(parts)
	if err != nil {
		return "", tea.Errorf(tea.ValidationError, "the key: %w", err)
	}
	return string(key), nil
}
