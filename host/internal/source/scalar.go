package source

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// resolvePlain returns the kind and value of an unquoted scalar by the YAML 1.2
// core schema; the value is nil for a string. The error is the reason why a value
// cannot be used.
func resolvePlain(text string) (Kind, any, error) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return Null, nil, nil
	case "true", "True", "TRUE":
		return Bool, true, nil
	case "false", "False", "FALSE":
		return Bool, false, nil
	case ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF":
		return Float, nil, fmt.Errorf("%s is not a number that JSON can represent", text)
	}
	if c := text[0]; c != '+' && c != '-' && c != '.' && (c < '0' || c > '9') {
		return String, nil, nil
	}
	match := number().FindStringSubmatch(text)
	if match == nil {
		return String, nil, nil
	}
	for group, base := range []int{1: 10, 2: 8, 3: 16} {
		if base > 0 && match[group] != "" {
			v, err := parseInt(strings.TrimPrefix(match[group], "+"), base)
			return Int, v, err
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Float, nil, fmt.Errorf("%s does not fit a 64-bit float", text)
	}
	return Float, f, nil
}

// number matches the spellings of a number, each kind in one group:
// integer, octal, hexadecimal and float.
var number = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:([-+]?[0-9]+)|0o([0-7]+)|0x([0-9a-fA-F]+)|([-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?))$`)
})

// maxDigits bounds integers beyond int64, whose parsing takes quadratic time.
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
		return nil, fmt.Errorf("%s is not an integer", digits)
	}
	return json.Number(long.String()), nil
}

// resolveTagged is resolvePlain for a scalar with an explicit tag.
func resolveTagged(tag, text string) (Kind, any, error) {
	switch tag {
	case "!!str", "!!timestamp", "!":
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
