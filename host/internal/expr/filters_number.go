package expr

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/python"
	"github.com/the-edge-agent/tea/sdk/value"
)

func numberFilters() map[string]filter {
	return map[string]filter{
		"abs":            {apply: absFilter},
		"filesizeformat": {params: params("binary"), apply: filesizeFilter},
		"float":          {params: params("default"), apply: floatFilter},
		"int":            {params: params("default", "base"), apply: intFilter},
		"round":          {params: params("precision", "method"), apply: roundFilter},
	}
}

func absFilter(a *args) any {
	if !python.IsNumber(a.in) {
		panic(failf("abs needs a number, not %s", typeName(a.in)))
	}
	if order, _ := value.Compare(python.Number(a.in), int64(0)); order < 0 {
		return python.Negate(a.in)
	}
	return must(python.Calculate("+", int64(0), a.in))
}

// parseFloat parses a float as Python's float() does, except infinities.
func parseFloat(s string) (float64, bool) {
	s = strings.ReplaceAll(strings.TrimSpace(s), "_", "")
	if strings.ContainsAny(s, "xXpPiInN") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

func floatFilter(a *args) any {
	switch v := a.in.(type) {
	case int64, float64, json.Number, bool:
		return must(python.Finite(python.Float(v)))
	case string:
		if f, ok := parseFloat(v); ok {
			return f
		}
	}
	return a.any(0, 0.0)
}

func intFilter(a *args) any {
	base := a.int(1, 10)
	switch v := a.in.(type) {
	case int64, json.Number:
		return v
	case bool:
		return python.Number(v)
	case float64:
		return whole(v)
	case string:
		if i, ok := parseInt(v, base); ok {
			return i
		}
		if f, ok := parseFloat(v); ok && base == 10 {
			return whole(f)
		}
	}
	return a.any(0, int64(0))
}

// whole returns a finite float without its fraction as an integer.
func whole(f float64) any {
	i, _ := value.Integer(math.Trunc(f))
	return i
}

// parseInt parses an integer; its prefix must match the base.
func parseInt(s string, base int) (any, bool) {
	s = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), "_", ""))
	prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	if prefix != "" {
		s = strings.TrimPrefix(s, prefix)
	}
	if len(s) > python.MaxDigits || s == "" || base < 2 || base > 36 {
		return nil, false
	}
	i, ok := new(big.Int).SetString(sign+s, base)
	if !ok {
		return nil, false
	}
	return value.FromBig(i), true
}

func roundFilter(a *args) any {
	precision := a.int(0, 0)
	if !python.IsNumber(a.in) {
		panic(failf("round needs a number, not %s", typeName(a.in)))
	}
	if precision < -400 || precision > 400 {
		panic(failf("round: %d is not a valid precision", precision))
	}
	f, isFloat := a.in.(float64)
	if !isFloat {
		f = python.Float(a.in)
	}
	method := a.str(1, "common")
	switch method {
	case "common":
		if !isFloat && precision >= 0 {
			return a.in
		}
		rounded := roundHalfEven(f, precision)
		if !isFloat {
			return whole(rounded)
		}
		return must(python.Finite(rounded))
	case "ceil", "floor":
		scale := math.Pow(10, float64(precision))
		step := math.Floor
		if method == "ceil" {
			step = math.Ceil
		}
		return must(python.Finite(step(f*scale) / scale))
	}
	panic(failf(`round: the method must be "common", "ceil" or "floor"`))
}

// roundHalfEven rounds the exact value of f to a number of decimals.
func roundHalfEven(f float64, precision int) float64 {
	if precision < 0 {
		scale := math.Pow(10, float64(-precision))
		return math.RoundToEven(f/scale) * scale
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)
	if err != nil {
		return f
	}
	return rounded
}

func filesizeFilter(a *args) any {
	v := a.in
	if s, ok := v.(string); ok {
		if f, ok := parseFloat(s); ok {
			v = f
		}
	}
	if isNull(v) {
		v = int64(0)
	}
	if !python.IsNumber(v) {
		panic(failf("filesizeformat needs a number, not %s", typeName(v)))
	}
	size, base, middle := python.Float(v), 1000.0, ""
	if a.bool(0, false) {
		base, middle = 1024, "i"
	}
	switch {
	case size == 1:
		return "1 Byte"
	case size < base:
		return fmt.Sprintf("%d Bytes", int64(size))
	}
	unit := base
	letters := "kMGTPEZY"
	if middle != "" {
		letters = "KMGTPEZY"
	}
	for i, letter := range letters {
		if size < unit*base || i == len(letters)-1 {
			return fmt.Sprintf("%.1f %c%sB", size/unit, letter, middle)
		}
		unit *= base
	}
	panic(failure{err: python.ErrNotFinite})
}
