package jmespath

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"

	"github.com/the-edge-agent/tea/host/internal/exact"
	"github.com/the-edge-agent/tea/sdk/value"
)

// maxBits bounds how long calculated integers get.
const maxBits = 4096

func float(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	case json.Number:
		f, _ := v.Float64() // infinite where it is too large, which the caller refuses
		return f
	}
	return math.NaN()
}

// arithmetic calculates: with integers exactly, and to an integer where the
// result is one, 'd' being division rounded down.
func arithmetic(operator byte, a, b any) (any, error) {
	ai, aInt := exact.Int(a)
	bi, bInt := exact.Int(b)
	if !aInt || !bInt {
		return floatArithmetic(operator, float(a), float(b))
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
			return floatArithmetic(operator, float(a), float(b))
		}
		result = quotient
	}
	if result.BitLen() > maxBits {
		return nil, fmt.Errorf("the result has too many digits")
	}
	return value.FromNumber(json.Number(result.String()))
}

func floatArithmetic(operator byte, a, b float64) (any, error) {
	var f float64
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
		return nil, fmt.Errorf("the result is no finite number")
	}
	return f, nil
}

// whole gives a float without fraction as an integer.
func whole(f float64) (any, error) {
	i, _ := big.NewFloat(f).Int(nil)
	return value.FromNumber(json.Number(i.String()))
}
