package file

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
)

const maxPattern = 4096

// Glob is a pattern for paths. It is translated to a regular expression (RE2), whose matching is linear in the path.
// Glob libraries backtrack without a bound on patterns like {a,a}{a,a}....
type Glob struct {
	re *regexp.Regexp
	// prefix begins all paths that match.
	prefix string
}

// Match reports whether a path matches.
func (g *Glob) Match(path string) bool { return g.re.MatchString(path) }

// Compile reads a pattern: * matches anything except a slash, ** anything, **/
// any folders or none, ? one character, [a-z] and [!a-z] one character of a set,
// {a,b} one of several patterns. A backslash escapes the next character. A
// pattern without a slash matches the last part of a path, one that ends in a
// slash everything below. The error is a validation_error.
func Compile(pattern string) (*Glob, error) {
	if len(pattern) > maxPattern || !utf8.ValidString(pattern) {
		return nil, tea.Errorf(tea.ValidationError, "a pattern for paths must be UTF-8 of at most %d bytes", maxPattern)
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

// charSet translates a set such as [a-z] or [!0-9] and returns its length, 0 if
// it does not end. A set never matches the slash.
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
		if low < '/' { // the parts on both sides of the slash
			writeRange(&b, low, '/'-1)
		}
		if high > '/' {
			writeRange(&b, '/'+1, high)
		}
	}
	if b.Len() == 1 { // only the slash
		return `[^\x{0}-\x{10FFFF}]`, end + 2
	}
	b.WriteByte(']')
	return b.String(), end + 2
}

func writeRange(b *strings.Builder, low, high rune) { fmt.Fprintf(b, `\x{%x}-\x{%x}`, low, high) }
