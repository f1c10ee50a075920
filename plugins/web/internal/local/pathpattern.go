package local

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// pathPattern is a pattern of paths. It matches the beginning of a path; * matches any
// characters, and a trailing $ matches the end. Percent-encodings are compared as RFC
// 9309, section 2.2.2, requires.
type pathPattern struct {
	parts []string // between the *
	atEnd bool
	// size is the number of octets of the pattern, including * and $. An encoded unreserved
	// character counts as one octet, and an octet that is not ASCII as its encoding, which
	// has three. The rule of robots.txt with the largest size applies.
	size int
}

func newPathPattern(text string) pathPattern {
	body, atEnd := strings.CutSuffix(text, "$")
	size := len(normalisePath(text))
	for _, c := range []byte(text) {
		if c < utf8.RuneSelf && c != '%' && len(normalisePath(string(c))) > 1 {
			size -= 2 // an ASCII character that only comparisons encode
		}
	}
	parts := strings.Split(body, "*")
	for i := range parts {
		parts[i] = normalisePath(parts[i])
	}
	return pathPattern{parts, atEnd, size}
}

// match reports whether the pattern matches a path from [normalisePath].
func (p pathPattern) match(path string) bool {
	rest, ok := strings.CutPrefix(path, p.parts[0])
	if !ok {
		return false
	}
	last := len(p.parts) - 1
	for i, part := range p.parts[1:] {
		if p.atEnd && i+1 == last {
			return strings.HasSuffix(rest, part)
		}
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return !p.atEnd || rest == ""
}

// normalisePath returns a path with its query, or an address, in the form in which RFC
// 9309 compares them: unreserved characters are decoded, and characters that are
// neither reserved nor unreserved are encoded. The * and $ of a path are encoded,
// because they have a meaning in patterns.
func normalisePath(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		isEncoded := false
		if c == '%' && i+2 < len(path) {
			if n, err := strconv.ParseUint(path[i+1:i+3], 16, 8); err == nil {
				c, isEncoded = byte(n), true
				i += 2
			}
		}
		if isUnreserved(c) || !isEncoded && strings.IndexByte(":/?#[]@!&'()+,;=", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// inQuery decodes delimiters that have no meaning in a query, where RFC 9309 considers
// both forms equal.
var inQuery = strings.NewReplacer("%3A", ":", "%2F", "/", "%3F", "?", "%40", "@", "%5B", "[", "%5D", "]")

// plainQuery returns a path from [normalisePath] with the delimiters in its query
// decoded.
func plainQuery(path string) string {
	before, query, found := strings.Cut(path, "?")
	if !found {
		return path
	}
	return before + "?" + inQuery.Replace(query)
}

// queryForms returns a pattern and, if it differs, the pattern with the delimiters in
// its query decoded.
func queryForms(p pathPattern) []pathPattern {
	plain := strings.Split(plainQuery(strings.Join(p.parts, "*")), "*")
	if slices.Equal(plain, p.parts) {
		return []pathPattern{p}
	}
	return []pathPattern{p, {plain, p.atEnd, p.size}}
}

// requestPath returns the path and the query of an address in the form of
// [normalisePath].
func requestPath(u *url.URL) string {
	path := u.EscapedPath()
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	return normalisePath(path)
}
