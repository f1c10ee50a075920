package jmespath

import (
	"fmt"
	"math"
	"math/big"

	"github.com/the-edge-agent/tea/sdk/value"
)

// maxBits bounds calculated integers.
const maxBits = 4096

// arithmetic calculates: with integers exactly, and to an integer where the
// result is one, 'd' being division rounded down.
func arithmetic(operator byte, a, b any) (any, error) {
	ai, aInt := value.Big(a)
	bi, bInt := value.Big(b)
	if !aInt || !bInt {
		return floatArithmetic(operator, a, b)
	}
	result := new(big.Int)
	switch operator {
	case '+':
		result.Add(ai, bi)
	case '-':
		result.Sub(ai, bi)
	case '*':
		result.Mul(ai, bi)
	case '%':
		result.Rem(ai, bi)
	case 'd':
		quotient, rest := new(big.Int).QuoRem(ai, bi, result)
		if rest.Sign() != 0 && rest.Sign() != bi.Sign() {
			quotient.Sub(quotient, big.NewInt(1))
		}
		result = quotient
	case '/':
		quotient, rest := new(big.Int).QuoRem(ai, bi, new(big.Int))
		if rest.Sign() != 0 {
			return floatArithmetic(operator, a, b)
		}
		result = quotient
	}
	if result.BitLen() > maxBits {
		return nil, fmt.Errorf("the result has too many digits")
	}
	return value.FromBig(result), nil
}

// floatArithmetic calculates with the nearest floats, which are infinite, and
// refused by their result, where a number is out of range.
func floatArithmetic(operator byte, x, y any) (any, error) {
	var f float64
	a, _ := value.Float(x)
	b, _ := value.Float(y)
	switch operator {
	case '+':
		f = a + b
	case '-':
		f = a - b
	case '*':
		f = a * b
	case '/':
		f = a / b
	case 'd':
		f = math.Floor(a / b)
	case '%':
		f = math.Mod(a, b)
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, fmt.Errorf("the result is not a finite number")
	}
	return f, nil
}
