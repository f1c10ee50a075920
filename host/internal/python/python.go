// Package python implements the parts of Python that templates and JMESPath share:
// arithmetic and slices, on values of the value model (package sdk/value). A
// boolean is the number 0 or 1. Start with [Calculate] and [Indices].
package python

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"math/big"

	"github.com/the-edge-agent/tea/sdk/value"
)

// MaxDigits bounds integers beyond 64 bits, as in Python.
const MaxDigits = 4300

// maxBits is approximately MaxDigits in bits.
const maxBits = 14_285

var (
	// ErrDivision is a division by zero.
	ErrDivision = errors.New("division by zero")
	// ErrNotFinite is a result that is infinite or not a number.
	ErrNotFinite = errors.New("the result is not a finite number")

	errHuge = fmt.Errorf("the result has more than %d digits", MaxDigits)
)

// Number converts a boolean to 0 or 1 and returns other values unchanged.
func Number(v any) any {
	switch v {
	case true:
		return int64(1)
	case false:
		return int64(0)
	}
	return v
}

// IsNumber reports whether a value is a number or a boolean.
func IsNumber(v any) bool { return value.IsNumber(Number(v)) }

// Float converts a number to the nearest float, which can be infinite.
func Float(v any) float64 {
	f, _ := value.Float(Number(v))
	return f
}

// Big converts an integer; 0 for other values.
func Big(v any) *big.Int {
	if i, ok := value.Big(Number(v)); ok {
		return i
	}
	return new(big.Int)
}

// Calculate applies + - * / // % or ** to two numbers. Integers are exact, except
// that / returns a float. The error is ErrDivision, ErrNotFinite, or reports that
// the result is too long.
func Calculate(op string, left, right any) (any, error) {
	_, leftFloat := left.(float64)
	_, rightFloat := right.(float64)
	if leftFloat || rightFloat || op == "/" {
		return finite(calculateFloat(op, Float(left), Float(right)))
	}
	a, aSmall := left.(int64)
	b, bSmall := right.(int64)
	if aSmall && bSmall {
		if v, ok := calculateSmall(op, a, b); ok {
			return v, nil
		}
	}
	return calculateBig(op, Big(left), Big(right))
}

// calculateSmall calculates if neither an overflow nor a special case is
// possible.
func calculateSmall(op string, a, b int64) (int64, bool) {
	switch op {
	case "+":
		sum := a + b
		return sum, (sum > a) == (b > 0)
	case "-":
		difference := a - b
		return difference, (difference < a) == (b > 0)
	case "*":
		const half = 1 << 31
		return a * b, -half < a && a < half && -half < b && b < half
	case "//", "%":
		if b <= 0 || a < 0 {
			return 0, false
		}
		if op == "%" {
			return a % b, true
		}
		return a / b, true
	}
	return 0, false
}

func calculateBig(op string, a, b *big.Int) (any, error) {
	out := new(big.Int)
	switch op {
	case "+":
		out.Add(a, b)
	case "-":
		out.Sub(a, b)
	case "*":
		if a.BitLen()+b.BitLen() > maxBits {
			return nil, errHuge
		}
		out.Mul(a, b)
	case "//", "%":
		if b.Sign() == 0 {
			return nil, ErrDivision
		}
		remainder := new(big.Int)
		out.QuoRem(a, b, remainder)
		if remainder.Sign() != 0 && remainder.Sign() != b.Sign() { // Python rounds down
			out.Sub(out, big.NewInt(1))
			remainder.Add(remainder, b)
		}
		if op == "%" {
			out = remainder
		}
	case "**":
		return power(a, b)
	}
	if out.BitLen() > maxBits {
		return nil, errHuge
	}
	return value.FromBig(out), nil
}

func power(a, b *big.Int) (any, error) {
	if b.Sign() < 0 {
		return finite(calculateFloat("**", Float(value.FromBig(a)), Float(value.FromBig(b))))
	}
	if a.BitLen() <= 1 { // 0, 1 or -1: the result depends only on whether the exponent is 0, odd or even
		b = big.NewInt(int64(b.Bit(0)) + 2*int64(b.Sign()))
	} else if !b.IsInt64() || b.Int64() > int64(maxBits/(a.BitLen()-1)) {
		return nil, errHuge
	}
	return value.FromBig(new(big.Int).Exp(a, b, nil)), nil
}

func calculateFloat(op string, a, b float64) (float64, error) {
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "**":
		if a == 0 && b < 0 {
			return 0, ErrDivision
		}
		return math.Pow(a, b), nil
	}
	if b == 0 {
		return 0, ErrDivision
	}
	switch op {
	case "//":
		return math.Floor(a / b), nil
	case "%":
		m := math.Mod(a, b)
		if m != 0 && (m < 0) != (b < 0) {
			m += b
		}
		return m, nil
	}
	return a / b, nil
}

func finite(f float64, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return Finite(f)
}

// Finite returns f, or ErrNotFinite if it is infinite or not a number.
func Finite(f float64) (any, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, ErrNotFinite
	}
	return f, nil
}

// Negate returns -v for a number.
func Negate(v any) any {
	if f, ok := v.(float64); ok {
		return -f
	}
	return value.FromBig(new(big.Int).Neg(Big(v)))
}

// Indices yields the indices of the slice [start:stop:step] of a sequence of
// length n. A nil bound is absent; step must not be 0.
func Indices(n int, start, stop *int, step int) iter.Seq[int] {
	low, high := 0, n // limits of a bound
	from, to := 0, n
	if step < 0 {
		low, high = -1, n-1
		from, to = n-1, -1
	}
	bound := func(b *int, fallback int) int {
		if b == nil {
			return fallback
		}
		i := *b
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	from, to = bound(start, from), bound(stop, to)
	return func(yield func(int) bool) {
		for i := from; (step > 0 && i < to) || (step < 0 && i > to); i += step {
			if !yield(i) || step > n || step < -n {
				return
			}
		}
	}
}
