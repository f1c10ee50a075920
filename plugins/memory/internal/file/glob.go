package file

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
)

const maxPattern = 4096

// Glob is a pattern of paths.
type Glob struct {
	re *regexp.Regexp
	// prefix begins all paths that fit.
	prefix string
}

// Match says whether a path fits.
func (g *Glob) Match(path string) bool { return g.re.MatchString(path) }

// Compile reads a pattern: * is anything but a slash, ** anything, **/ any
// folders or none, ? one character, [a-z] and [!a-z] one of a set, {a,b} one
// of several. A backslash takes the next character as it is. A pattern
// without a slash fits the last part of a path, one with a slash at its end
// all that is below.
func Compile(pattern string) (*Glob, error) {
	if len(pattern) > maxPattern || !utf8.ValidString(pattern) {
		return nil, tea.Errorf(tea.ValidationError, "a pattern of paths is UTF-8 of at most %d bytes", maxPattern)
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	expression, err := translate(pattern)
	if err != nil {
		return nil, err
	}
	prefix, anywhere := "", "(?:.*/)?"
	if strings.Contains(pattern, "/") {
		prefix, anywhere = pattern, ""
		if i := strings.IndexAny(pattern, `*?[{\`); i >= 0 {
			prefix = pattern[:i]
		}
	}
	re, err := regexp.Compile(`^(?s:` + anywhere + expression + `)$`)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the pattern %q: %w", pattern, err)
	}
	return &Glob{re: re, prefix: prefix}, nil
}

// translate gives a pattern as a regular expression.
func translate(pattern string) (string, error) {
	var b strings.Builder
	braces := 0
	for rest := pattern; rest != ""; {
		taken := 1
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString(`(?:.*/)?`)
			taken = 3
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			taken = 2
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
		case rest[0] == '?':
			b.WriteString(`[^/]`)
		case rest[0] == '[':
			set, n := charSet(rest)
			if n == 0 {
				return "", tea.Errorf(tea.ValidationError, "the pattern %q has a [ without its ]", pattern)
			}
			b.WriteString(set)
			taken = n
		case rest[0] == '{':
			b.WriteString(`(?:`)
			braces++
		case rest[0] == '}' && braces > 0:
			b.WriteByte(')')
			braces--
		case rest[0] == ',' && braces > 0:
			b.WriteByte('|')
		default:
			if rest[0] == '\\' && len(rest) > 1 {
				rest = rest[1:]
			}
			_, taken = utf8.DecodeRuneInString(rest)
			b.WriteString(regexp.QuoteMeta(rest[:taken]))
		}
		rest = rest[taken:]
	}
	if braces > 0 {
		return "", tea.Errorf(tea.ValidationError, "the pattern %q has a { without its }", pattern)
	}
	return b.String(), nil
}

// charSet reads a set such as [a-z] or [!0-9] and gives it as a regular
// expression with its length; 0 where it does not end.
func charSet(s string) (set string, length int) {
	end := strings.IndexByte(s[1:], ']')
	if end < 1 {
		return "", 0
	}
	inside := s[1 : 1+end]
	negated := inside[0] == '!' || inside[0] == '^'
	if negated {
		inside = inside[1:]
	}
	var b strings.Builder
	b.WriteByte('[')
	if negated {
		b.WriteString(`^/`)
	}
	for members := []rune(inside); len(members) > 0; {
		low, high := members[0], members[0]
		members = members[1:]
		if len(members) > 1 && members[0] == '-' {
			high = members[1]
			members = members[2:]
		}
		if negated || low > '/' || high < '/' {
			writeRange(&b, low, high)
			continue
		}
		if low < '/' { // what is on both sides of the slash
			writeRange(&b, low, '/'-1)
		}
		if high > '/' {
			writeRange(&b, '/'+1, high)
		}
	}
	if b.Len() == 1 { // the slash alone: nothing
		return `[^\x{0}-\x{10FFFF}]`, end + 2
	}
	b.WriteByte(']')
	return b.String(), end + 2
}

func writeRange(b *strings.Builder, low, high rune) { fmt.Fprintf(b, `\x{%x}-\x{%x}`, low, high) }
