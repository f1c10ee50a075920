package store

import (
	"database/sql/driver"
	"fmt"
	"strconv"
)

// Decimal is a number with Scale digits after the point: Units / 10^Scale. It
// can be a value of [Tx.Append] and an argument of a statement.
type Decimal struct {
	Units int64
	Scale int
}

// String returns the number with all digits, such as -12.50.
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

// Value returns the number as text, for the database to cast.
func (d Decimal) Value() (driver.Value, error) { return d.String(), nil }
