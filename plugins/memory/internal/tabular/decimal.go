package tabular

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// maxDigits is the number of decimal digits that a float64 represents exactly.
	maxDigits = 15
	// decimalDigits and decimalScale are the defaults.
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
		return "", true, tea.Errorf(tea.ValidationError, "%s: a decimal has 1 to %d digits, and at most as many after the point: decimal(12, 2)", name, maxDigits)
	}
	return Type(fmt.Sprintf("decimal(%d,%d)", digits, scale)), true, nil
}

// decimal returns the number of digits of a decimal type, and the number of
// digits after the point.
func (t Type) decimal() (digits, scale int, ok bool) {
	inner, ok := strings.CutPrefix(string(t), "decimal(")
	if !ok {
		return 0, 0, false
	}
	before, after, _ := strings.Cut(strings.TrimSuffix(inner, ")"), ",")
	digits, _ = strconv.Atoi(before) // as written by decimalType
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
	case dialect == store.PostgreSQL:
		return "numeric"
	case scale == 0:
		return "BIGINT"
	}
	return "DOUBLE"
}

// parseDecimal reads a JSON number, or a string with one.
func parseDecimal(raw json.RawMessage, digits, scale int) (d store.Decimal, ok bool) {
	number := string(raw)
	if number[0] == '"' {
		if number, ok = text(raw); !ok || number == "" {
			return d, false
		}
	}
	r, ok := exactly(number)
	if !ok {
		return d, false
	}
	units := r.Mul(r, new(big.Rat).SetInt(powerOfTen(scale)))
	if !units.IsInt() || units.Num().CmpAbs(powerOfTen(digits)) >= 0 {
		return d, false
	}
	return store.Decimal{Units: units.Num().Int64(), Scale: scale}, true
}

func powerOfTen(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// decimalNumber returns the form of a decimal in SQLite.
func decimalNumber(d store.Decimal) any {
	if d.Scale == 0 {
		return d.Units
	}
	f, err := strconv.ParseFloat(d.String(), 64)
	if err != nil {
		return math.NaN() // unreachable: fifteen digits fit
	}
	return f
}
