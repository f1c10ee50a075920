package tabular

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

const (
	// maxDigits is how many decimal digits a number in a workflow has exactly.
	maxDigits = 15
	// decimalDigits and decimalScale are those of a plain decimal.
	decimalDigits, decimalScale = 15, 3
)

var decimalName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^decimal(?:\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\))?$`)
})

// decimalType reads decimal, decimal(digits) and decimal(digits, scale).
func decimalType(name string) (t Type, ok bool, err error) {
	m := decimalName().FindStringSubmatch(name)
	if m == nil {
		return "", false, nil
	}
	digits, scale := decimalDigits, decimalScale
	if m[1] != "" {
		digits, _ = strconv.Atoi(m[1]) // the pattern has digits only
		scale, _ = strconv.Atoi("0" + m[2])
	}
	if digits < 1 || digits > maxDigits || scale > digits {
		return "", true, tea.Errorf(tea.ValidationError, "%s: a decimal has 1 to %d digits, of which none or all are after the point: decimal(12, 2)", name, maxDigits)
	}
	return Type(fmt.Sprintf("decimal(%d,%d)", digits, scale)), true, nil
}

// decimal gives the digits of a decimal type, and those after the point.
func (t Type) decimal() (digits, scale int, ok bool) {
	inner, ok := strings.CutPrefix(string(t), "decimal(")
	if !ok {
		return 0, 0, false
	}
	before, after, _ := strings.Cut(strings.TrimSuffix(inner, ")"), ",")
	digits, _ = strconv.Atoi(before) // decimalType wrote it
	scale, _ = strconv.Atoi(after)
	return digits, scale, true
}

func (t Type) isDecimal() bool {
	_, _, ok := t.decimal()
	return ok
}

func decimalSQL(dialect store.Dialect, digits, scale int) string {
	switch {
	case dialect == store.DuckDB:
		return fmt.Sprintf("DECIMAL(%d,%d)", digits, scale)
	case scale == 0:
		return "BIGINT"
	}
	return "DOUBLE"
}

// parseDecimal takes a JSON number, or a text of one.
func parseDecimal(raw json.RawMessage, digits, scale int) (d store.Decimal, ok bool) {
	number := string(raw)
	if number[0] == '"' {
		if number, ok = text(raw); !ok || !json.Valid([]byte(number)) {
			return d, false
		}
	}
	number, negative := strings.CutPrefix(number, "-")
	if number == "" || number[0] < '0' || number[0] > '9' {
		return d, false
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	integer, fraction, _ := strings.Cut(mantissa, ".")
	shift := scale
	if exponent != "" {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > 1000 || e < -1000 {
			return d, false
		}
		shift += e
	}
	// The digits as a whole number, with the point moved to their end.
	whole, point := integer+fraction, len(integer)+shift
	whole = strings.TrimRight(whole, "0")
	if point > len(whole) {
		whole += strings.Repeat("0", point-len(whole))
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		return store.Decimal{Scale: scale}, true
	}
	if point < len(strings.TrimRight(integer+fraction, "0")) || len(whole) > digits {
		return d, false
	}
	units, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return d, false
	}
	if negative {
		units = -units
	}
	return store.Decimal{Units: units, Scale: scale}, true
}

// decimalNumber is a decimal as SQLite keeps it.
func decimalNumber(d store.Decimal) any {
	if d.Scale == 0 {
		return d.Units
	}
	f, err := strconv.ParseFloat(d.String(), 64)
	if err != nil {
		return math.NaN() // cannot be: fifteen digits fit
	}
	return f
}
