package tabular

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// timestampText is the form of an instant in SQLite, always in UTC, so that
	// the order of the texts is the order of the instants.
	timestampText = "2006-01-02T15:04:05.000000Z"
	dateText      = "2006-01-02"
)

// parse converts a JSON value for the column to nil, a string, int64, float64,
// bool, store.Decimal or time.Time. The error is a validation_error.
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
		return nil, tea.Errorf(tea.ValidationError, "column %q takes %s, not %.60s", c.Name, c.Type.describe(), raw)
	}
	return v, nil
}

func (t Type) describe() string {
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
		return f + 0, err == nil // + 0 turns -0 into 0, which is the same key
	case Bool:
		return string(raw) == "true", string(raw) == "true" || string(raw) == "false"
	case Timestamp:
		s, ok := text(raw)
		t, valid := clock.Parse(s)
		return t, ok && valid
	case Date:
		s, ok := text(raw)
		t, err := time.Parse(dateText, s)
		return t, ok && err == nil && t.Year() >= 1
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
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return n, number[0] != '+'
	}
	r, ok := exactly(number)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

// maxNumber and maxExponent bound the numbers that exactly accepts: 1e999999999
// would need memory for all its digits.
const maxNumber, maxExponent = 4096, 1000

// exactly reads a number of JSON without rounding it.
func exactly(number string) (*big.Rat, bool) {
	if len(number) > maxNumber || strings.IndexByte("-0123456789", number[0]) < 0 || !json.Valid([]byte(number)) {
		return nil, false
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(number), "e"); ok {
		if e, err := strconv.Atoi(exponent); err != nil || e < -maxExponent || e > maxExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(number)
}

// stored returns a value in the form for [store.Tx.Append].
func (c Column) stored(dialect store.Dialect, v any) any {
	if dialect == store.DuckDB {
		return v
	}
	return c.bound(dialect, v)
}

// bound returns a value in the form for a parameter of a statement.
func (c Column) bound(dialect store.Dialect, v any) any {
	if d, ok := v.(store.Decimal); ok && (dialect == store.SQLite || dialect == JSONRows) {
		return decimalNumber(d)
	}
	return c.plain(v)
}

// plain returns a value without the types of this package, in the same form on
// both databases.
func (c Column) plain(v any) any {
	switch v := v.(type) {
	case time.Time:
		return c.timeText(v)
	case store.Decimal:
		return v.String()
	}
	return v
}

// value returns the SQL of a column of a row.
func (c Column) value(dialect store.Dialect) string {
	switch {
	case dialect == JSONRows && c.Type == JSON:
		return "nullif(body -> '$." + c.Name + "', 'null')"
	case dialect == JSONRows:
		return c.cast("json_extract(body, '$." + c.Name + "')")
	case dialect != store.PostgreSQL:
		return quote(c.Name)
	case c.Type == JSON:
		return "nullif(body -> '" + c.Name + "', 'null')"
	}
	return "(body ->> '" + c.Name + "')::" + c.Type.sql(dialect)
}

// cast returns the SQL that converts a number in JSON or in a text to SQLite's
// type.
func (c Column) cast(expression string) string {
	switch name := c.Type.sql(store.SQLite); name {
	case "BIGINT", "BOOLEAN":
		return "CAST(" + expression + " AS INTEGER)"
	case "DOUBLE":
		return "CAST(" + expression + " AS REAL)"
	}
	return expression
}

// inTime returns the SQL of a column of a query on SQLite, in which an instant
// compares with texts in any form.
func (c Column) inTime(column string) string {
	if c.Type == Timestamp {
		return column + " COLLATE " + clock.Collation
	}
	return column
}

// parameter returns the placeholder of a bound value in a statement.
func (c Column) parameter(dialect store.Dialect) string {
	switch dialect {
	case store.SQLite:
		return "?"
	case JSONRows:
		return c.cast("?")
	}
	return "CAST(? AS " + c.Type.sql(dialect) + ")"
}

func (c Column) timeText(t time.Time) string {
	if c.Type == Date {
		return t.Format(dateText)
	}
	return t.Format(timestampText)
}

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
