package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"
)

// maxIntegerDigits bounds integers beyond 64 bits, as Python does.
const maxIntegerDigits = 4300

// maxIntegerBits is about the same in bits.
const maxIntegerBits = 14_285

var (
	errDivision   = errors.New("division by zero")
	errHuge       = fmt.Errorf("the result has more than %d digits", maxIntegerDigits)
	errNotFinite  = errors.New("the result is not a finite number")
	errListRepeat = fmt.Errorf("the list would have more than %d elements", maxElements)
)

// operate applies an arithmetic operator by Python's rules.
func operate(op string, left, right any) (any, error) {
	switch op {
	case "~":
		return join(left, right)
	case "%":
		if format, ok := left.(string); ok {
			return formatText(format, right)
		}
	case "+":
		if v, ok, err := add(left, right); ok {
			return v, err
		}
	case "*":
		if v, ok, err := multiply(left, right); ok {
			return v, err
		}
	}
	if isNumber(left) && isNumber(right) {
		return calculate(op, left, right)
	}
	message := fmt.Sprintf("cannot calculate %s %s %s", typeName(left), op, typeName(right))
	switch {
	case isNull(left) || isNull(right):
		return nil, &hintedError{message, "set a default for values that can be missing: x | default(0)"}
	case op == "+":
		return nil, &hintedError{message, "join texts with ~, or convert with | int, | float or | string"}
	}
	return nil, errors.New(message)
}

func join(left, right any) (any, error) {
	a, err := textOf(left)
	if err != nil {
		return nil, err
	}
	b, err := textOf(right)
	if err != nil {
		return nil, err
	}
	if len(a)+len(b) > maxText {
		return nil, errTextTooLong
	}
	return a + b, nil
}

// add joins strings and lists.
func add(left, right any) (v any, ok bool, err error) {
	switch a := left.(type) {
	case string:
		if b, ok := right.(string); ok {
			v, err = join(a, b)
			return v, true, err
		}
	case []any:
		if b, ok := right.([]any); ok {
			if len(a)+len(b) > maxElements {
				return nil, true, errListRepeat
			}
			return append(append(make([]any, 0, len(a)+len(b)), a...), b...), true, nil
		}
	}
	return nil, false, nil
}

// multiply repeats strings and lists.
func multiply(left, right any) (v any, ok bool, err error) {
	n, isCount := right.(int64)
	if !isCount {
		if n, isCount = left.(int64); !isCount {
			return nil, false, nil
		}
		left = right
	}
	switch a := left.(type) {
	case string:
		v, err = repeat(a, n)
		return v, true, err
	case []any:
		if n = max(n, 0); len(a) > 0 && n > maxElements/int64(len(a)) {
			return nil, true, errListRepeat
		}
		out := make([]any, 0, len(a)*int(n))
		for range n {
			out = append(out, a...)
		}
		return out, true, measuredParts(out)
	}
	return nil, false, nil
}

// repeat returns s n times; it fails before it allocates if that is too long.
func repeat(s string, n int64) (string, error) {
	if n <= 0 || s == "" {
		return "", nil
	}
	if n > int64(maxText/len(s)) {
		return "", errTextTooLong
	}
	return strings.Repeat(s, int(n)), nil
}

// isNumber reports whether a value is a number; booleans are 0 and 1.
func isNumber(v any) bool {
	return value.IsNumber(withoutBool(v))
}

// toFloat and toBig convert values for which isNumber is true.
func toFloat(v any) float64 {
	f, _ := value.Float(withoutBool(v))
	return f
}

func toBig(v any) *big.Int {
	if i, ok := value.Big(withoutBool(v)); ok {
		return i
	}
	return new(big.Int)
}

func calculate(op string, left, right any) (any, error) {
	_, leftFloat := left.(float64)
	_, rightFloat := right.(float64)
	if leftFloat || rightFloat || op == "/" {
		return finite(calculateFloat(op, toFloat(left), toFloat(right)))
	}
	a, aSmall := left.(int64)
	b, bSmall := right.(int64)
	if aSmall && bSmall {
		if v, ok := calculateSmall(op, a, b); ok {
			return v, nil
		}
	}
	return calculateBig(op, toBig(left), toBig(right))
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
		if a.BitLen()+b.BitLen() > maxIntegerBits {
			return nil, errHuge
		}
		out.Mul(a, b)
	case "//", "%":
		if b.Sign() == 0 {
			return nil, errDivision
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
	if out.BitLen() > maxIntegerBits {
		return nil, errHuge
	}
	return value.FromBig(out), nil
}

func power(a, b *big.Int) (any, error) {
	if b.Sign() < 0 {
		return finite(calculateFloat("**", toFloat(value.FromBig(a)), toFloat(value.FromBig(b))))
	}
	if a.BitLen() <= 1 { // 0, 1 or -1: the result depends only on whether the exponent is 0, odd or even
		b = big.NewInt(int64(b.Bit(0)) + 2*int64(b.Sign()))
	} else if !b.IsInt64() || b.Int64() > int64(maxIntegerBits/(a.BitLen()-1)) {
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
			return 0, errDivision
		}
		return math.Pow(a, b), nil
	}
	if b == 0 {
		return 0, errDivision
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
	if err == nil && (math.IsInf(f, 0) || math.IsNaN(f)) {
		err = errNotFinite
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func negate(v any) (any, error) {
	switch v := v.(type) {
	case float64:
		return -v, nil
	case int64, json.Number, bool:
		return value.FromBig(toBig(v).Neg(toBig(v))), nil
	}
	return nil, fmt.Errorf("%s has no sign", typeName(v))
}
