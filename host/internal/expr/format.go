package expr

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/python"
)

// maxFormatWidth bounds the width and the precision of one directive.
const maxFormatWidth = 10_000

func formatFilter(a *args) any {
	if len(a.values.named) > 0 {
		if len(a.values.positional) > 0 {
			panic(failf("format takes either named or positional arguments"))
		}
		return formatText(a.text(), a.values.named)
	}
	return formatText(a.text(), a.values.positional)
}

// directive is one %... of a format.
type directive struct {
	key              string
	hasKey           bool
	flags            string
	width, precision int // -1 where absent
	verb             byte
}

// formatText is Python's % for strings: a list has the values in order, an
// object those of %(name)s, anything else is the only value.
func formatText(format string, v any) string {
	named, _ := plainValue(v).(map[string]any)
	list, isList := plainValue(v).([]any)
	if !isList {
		list = []any{v}
	}
	var b strings.Builder
	used := 0
	for format != "" {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			b.WriteString(format)
			break
		}
		b.WriteString(format[:i])
		d, size := parseDirective(format[i:])
		format = format[i+size:]
		if d.verb == '%' {
			b.WriteByte('%')
			continue
		}
		var arg any
		if d.hasKey {
			arg = named[d.key]
		} else {
			if used >= len(list) {
				panic(failf("the format has more directives than values"))
			}
			arg = list[used]
			used++
		}
		b.WriteString(d.format(arg))
		checkText(b.Len())
	}
	if named == nil && used < len(list) {
		panic(failf("the format has fewer directives than values"))
	}
	return b.String()
}

func parseDirective(s string) (directive, int) {
	d := directive{width: -1, precision: -1}
	i := 1
	if i < len(s) && s[i] == '(' {
		end := strings.IndexByte(s, ')')
		if end < 0 {
			panic(failf("the format has %%( without )"))
		}
		d.key, d.hasKey = s[2:end], true
		i = end + 1
	}
	start := i
	for i < len(s) && strings.IndexByte("-+ 0#", s[i]) >= 0 {
		i++
	}
	d.flags = s[start:i]
	d.width, i = formatNumber(s, i)
	if i < len(s) && s[i] == '.' {
		d.precision, i = formatNumber(s, i+1)
		d.precision = max(d.precision, 0)
	}
	if i >= len(s) {
		panic(failf("the format ends inside a %% directive (write %%%% for a percent sign)"))
	}
	d.verb = s[i]
	return d, i + 1
}

func formatNumber(s string, i int) (n, end int) {
	end = i
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	if end == i {
		return -1, end
	}
	n, err := strconv.Atoi(s[i:end])
	if err != nil || n > maxFormatWidth {
		panic(failf("the format has a width above %d", maxFormatWidth))
	}
	return n, end
}

// format formats one value.
func (d directive) format(v any) string {
	switch d.verb {
	case 's':
		return d.sprintf("s", textOf(v))
	case 'r':
		return d.sprintf("s", string(appendJSON(nil, v)))
	case 'd', 'i', 'u', 'x', 'X', 'o':
		if !python.IsNumber(v) {
			panic(failf("%%%c needs a number, not %s", d.verb, typeName(v)))
		}
		if f, ok := v.(float64); ok {
			v = whole(f)
		}
		verb := string(d.verb)
		if verb == "i" || verb == "u" {
			verb = "d"
		}
		d.precision = -1
		return d.sprintf(verb, python.Big(v))
	case 'f', 'F', 'e', 'E', 'g', 'G':
		if !python.IsNumber(v) {
			panic(failf("%%%c needs a number, not %s", d.verb, typeName(v)))
		}
		if d.precision < 0 {
			d.precision = 6
		}
		return d.sprintf(string(d.verb), python.Float(v))
	case 'c':
		s, _ := v.(string)
		if i, ok := v.(int64); ok {
			s = string(rune(i))
		}
		return d.sprintf("s", s)
	}
	panic(failf("unknown directive in the format: %%%c", d.verb))
}

func (d directive) sprintf(verb string, v any) string {
	format := "%" + d.flags
	if d.width >= 0 {
		format += strconv.Itoa(d.width)
	}
	if d.precision >= 0 {
		format += "." + strconv.Itoa(d.precision)
	}
	return fmt.Sprintf(format+verb, v)
}
