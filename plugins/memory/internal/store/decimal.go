package store

import (
	"database/sql/driver"
	"fmt"
	"strconv"
)

// Decimal is a number with a fixed count of digits after the point, as
// [Tx.Append] and the parameters of a statement take it. Units counts the last
// digit.
type Decimal struct {
	Units int64
	Scale int
}

// String writes all digits: -12.50.
func (d Decimal) String() string {
	if d.Scale == 0 {
		return strconv.FormatInt(d.Units, 10)
	}
	sign, units := "", d.Units
	if units < 0 {
		sign, units = "-", -units
	}
	digits := fmt.Sprintf("%0*d", d.Scale+1, units)
	return sign + digits[:len(digits)-d.Scale] + "." + digits[len(digits)-d.Scale:]
}

// Value is what a database's driver takes, which casts it.
func (d Decimal) Value() (driver.Value, error) { return d.String(), nil }
