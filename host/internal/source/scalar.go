package source

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// resolvePlain gives an unquoted scalar its kind and value by the YAML 1.2
// core schema; the value of a string is its text. The error says in plain
// words why a value cannot be used.
func resolvePlain(text string) (Kind, any, error) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return Null, nil, nil
	case "true", "True", "TRUE":
		return Bool, true, nil
	case "false", "False", "FALSE":
		return Bool, false, nil
	case ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF":
		return Float, nil, fmt.Errorf("%s is not a number that JSON can hold", text)
	}
	if c := text[0]; c != '+' && c != '-' && c != '.' && (c < '0' || c > '9') {
		return String, nil, nil
	}
	switch shape := numberShape(text); shape {
	case 'i':
		v, err := parseInt(strings.TrimPrefix(text, "+"), 10)
		return Int, v, err
	case 'o', 'x':
		base := map[byte]int{'o': 8, 'x': 16}[shape]
		v, err := parseInt(text[2:], base)
		return Int, v, err
	case 'f':
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return Float, nil, fmt.Errorf("%s does not fit a 64-bit float", text)
		}
		return Float, f, nil
	}
	return String, nil, nil
}

// numberShape tells which kind of number a text is written as: i(nteger),
// o(ctal), x (hexadecimal), f(loat), or 0 for none.
func numberShape(text string) byte {
	if len(text) > 2 && text[0] == '0' && (text[1] == 'o' || text[1] == 'x') {
		digits := "01234567"
		if text[1] == 'x' {
			digits = "0123456789abcdefABCDEF"
		}
		if strings.Trim(text[2:], digits) == "" {
			return text[1]
		}
		return 0
	}
	rest := strings.TrimLeft(text, "+-")
	if len(text)-len(rest) > 1 {
		return 0
	}
	whole := skipDigits(rest)
	if whole == len(rest) && whole > 0 {
		return 'i'
	}
	at, digits := whole, whole
	if at < len(rest) && rest[at] == '.' {
		fraction := skipDigits(rest[at+1:])
		at, digits = at+1+fraction, digits+fraction
	}
	if digits == 0 {
		return 0
	}
	if at < len(rest) && (rest[at] == 'e' || rest[at] == 'E') {
		exponent := strings.TrimLeft(rest[at+1:], "+-")
		signs := len(rest) - at - 1 - len(exponent)
		if signs > 1 || exponent == "" {
			return 0
		}
		at = len(rest) - len(exponent) + skipDigits(exponent)
	}
	if at != len(rest) {
		return 0
	}
	return 'f'
}

func skipDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// maxDigits bounds integers beyond int64: reading them takes time that grows
// with the square of their length.
const maxDigits = 1000

func parseInt(digits string, base int) (any, error) {
	if i, err := strconv.ParseInt(digits, base, 64); err == nil {
		return i, nil
	}
	if len(digits) > maxDigits {
		return nil, fmt.Errorf("an integer of %d digits is too long", len(digits))
	}
	var long big.Int
	if _, ok := long.SetString(digits, base); !ok {
		return nil, fmt.Errorf("%s is no integer", digits)
	}
	return json.Number(long.String()), nil
}

// resolveTagged gives a scalar with an explicit tag its value.
func resolveTagged(tag, text string) (Kind, any, error) {
	switch tag {
	case "!!str", "!!timestamp", "!", "!!binary":
		return String, nil, nil
	case "!!null", "!!bool", "!!int", "!!float":
	default:
		return Null, nil, fmt.Errorf("the tag %s is not supported", tag)
	}
	kind, v, err := resolvePlain(text)
	if err != nil {
		return kind, nil, err
	}
	want := map[string]Kind{"!!null": Null, "!!bool": Bool, "!!int": Int, "!!float": Float}[tag]
	if want == Float && kind == Int {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return Float, f, nil
		}
	}
	if kind != want {
		return kind, nil, fmt.Errorf("%q does not fit its tag %s", text, tag)
	}
	return kind, v, nil
}
