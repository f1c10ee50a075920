package expr

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/host/internal/python"
)

// formatMethod is "{}".format(...): fields by order, number or name, followed
// by keys and indices, and Python's format specifications.
func formatMethod(a *args) any {
	f := fields{args: a.values}
	s := a.text()
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		if strings.HasPrefix(s[i+1:], s[i:i+1]) { // {{ is {
			b.WriteByte(s[i])
			s = s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 0 {
			panic(failf("format() has a single { or } (write {{ and }} for braces)"))
		}
		b.WriteString(f.format(s[i+1 : i+end]))
		checkText(b.Len())
		s = s[i+end+1:]
	}
	return b.String()
}

// fields are the values of one format(), and the number of {} so far.
type fields struct {
	args values
	next int
}

// format formats one field: NAME.key[index]!s:SPEC.
func (f *fields) format(field string) string {
	name, spec, _ := strings.Cut(field, ":")
	name, conversion, converted := strings.Cut(name, "!")
	end := len(name)
	if i := strings.IndexAny(name, ".["); i >= 0 {
		end = i
	}
	v := inside(f.value(name[:end]), name[end:])
	if converted && conversion != "s" {
		panic(failf("format() has no conversion !%s", conversion))
	}
	p := parsePresentation(spec)
	return p.format(v)
}

func (f *fields) value(name string) any {
	i, err := strconv.Atoi(name)
	switch {
	case name == "":
		i = f.next
		f.next++
	case err != nil:
		v, ok := f.args.named[name]
		if !ok {
			panic(failf("format() has no argument %q", name))
		}
		return v
	}
	if i < 0 || i >= len(f.args.positional) {
		panic(failf("format() needs %d values, got %d", i+1, len(f.args.positional)))
	}
	return f.args.positional[i]
}

// inside follows .key and [index] after a field's name.
func inside(v any, path string) any {
	for path != "" {
		var key string
		if path[0] == '.' {
			end := strings.IndexAny(path[1:], ".[") + 1
			if end == 0 {
				end = len(path)
			}
			key, path = path[1:end], path[end:]
		} else {
			end := strings.IndexByte(path, ']')
			if end < 0 {
				panic(failf("format() has a [ without ]"))
			}
			key, path = path[1:end], path[end+1:]
		}
		if i, err := strconv.Atoi(key); err == nil {
			v = element(v, i)
		} else {
			v = field(v, key)
		}
	}
	return v
}

// presentation is a format specification: [[fill]align][sign][#][0][width][,][.precision][type].
type presentation struct {
	fill             string
	align            byte // < > ^ = or 0
	sign             byte
	alternate        bool
	group            byte // , or _ or 0
	width, precision int
	verb             byte
}

func parsePresentation(s string) presentation {
	p := presentation{fill: " ", width: -1, precision: -1}
	whole := s
	if _, size := utf8.DecodeRuneInString(s); size > 0 && size < len(s) && strings.IndexByte("<>^=", s[size]) >= 0 {
		p.fill, p.align, s = s[:size], s[size], s[size+1:]
	}
	take := func(set string) byte {
		if s != "" && strings.IndexByte(set, s[0]) >= 0 {
			c := s[0]
			s = s[1:]
			return c
		}
		return 0
	}
	if p.align == 0 {
		p.align = take("<>^=")
	}
	p.sign = take("+- ")
	p.alternate = take("#") != 0
	if take("0") != 0 && p.align == 0 {
		p.fill, p.align = "0", '='
	}
	var end int
	p.width, end = formatNumber(s, 0)
	s = s[end:]
	p.group = take(",_")
	if take(".") != 0 {
		p.precision, end = formatNumber(s, 0)
		s = s[end:]
	}
	p.verb = take("sdnbcoxXeEfFgG%")
	if s != "" {
		panic(failf("format() does not support the specification %q", whole))
	}
	return p
}

// format formats a value according to the presentation.
func (p presentation) format(v any) string {
	if !python.IsNumber(v) || p.verb == 's' || typeName(v) == "boolean" && p.verb == 0 {
		return p.formatOther(v)
	}
	digits := p.digits(v)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	} else if p.sign == '+' || p.sign == ' ' {
		sign = string(p.sign)
	}
	if p.alternate && strings.IndexByte("bxXo", p.verb) >= 0 {
		sign += "0" + string(p.verb)
	}
	digits = p.grouped(digits)
	switch p.align {
	case '=':
		return sign + pad(digits, p.width-len(sign), p.fill, alignRight)
	case 0:
		p.align = '>'
	}
	return p.padded(sign + digits)
}

func (p presentation) formatOther(v any) string {
	if p.verb != 0 && p.verb != 's' {
		panic(failf("format(): :%c needs a number, not %s", p.verb, typeName(v)))
	}
	s := textOf(v)
	if p.precision >= 0 && utf8.RuneCountInString(s) > p.precision {
		s = string([]rune(s)[:p.precision])
	}
	return p.padded(s)
}

func (p presentation) padded(s string) string {
	align := alignLeft
	switch p.align {
	case '>', '=':
		align = alignRight
	case '^': // unlike center(), with the odd space on the right
		s = pad(s, utf8.RuneCountInString(s)+max(p.width-utf8.RuneCountInString(s), 0)/2, p.fill, alignRight)
	}
	return pad(s, p.width, p.fill, align)
}

// digits formats a number without padding and grouping.
func (p presentation) digits(v any) string {
	_, isFloat := v.(float64)
	switch p.verb {
	case 'd', 'n', 'b', 'o', 'x', 'X', 'c':
		if isFloat {
			panic(failf("format(): :%c needs an integer, not a float", p.verb))
		}
		return p.integer(python.Big(v))
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		return p.float(python.Float(v))
	}
	if p.precision >= 0 {
		p.verb = 'g'
		return p.float(python.Float(v))
	}
	return textOf(v)
}

func (p presentation) integer(n *big.Int) string {
	verb := string(p.verb)
	switch p.verb {
	case 'n':
		verb = "d"
	case 'c':
		return string(rune(n.Int64())) //nolint:gosec // invalid code points become U+FFFD
	}
	return fmt.Sprintf("%"+verb, n)
}

func (p presentation) float(f float64) string {
	precision := 6
	if p.precision >= 0 {
		precision = p.precision
	}
	if p.verb == '%' {
		return fmt.Sprintf("%.*f%%", precision, f*100)
	}
	return fmt.Sprintf("%.*"+string(p.verb), precision, f)
}

// grouped inserts the separator between the thousands of the whole part.
func (p presentation) grouped(digits string) string {
	if p.group == 0 {
		return digits
	}
	end := 0
	for end < len(digits) && isDigit(digits[end]) {
		end++
	}
	var b strings.Builder
	for i := range end {
		if i > 0 && (end-i)%3 == 0 {
			b.WriteByte(p.group)
		}
		b.WriteByte(digits[i])
	}
	return b.String() + digits[end:]
}
