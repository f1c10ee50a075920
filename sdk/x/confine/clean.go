package confine

import (
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// maxPath is the longest path that Linux supports.
	maxPath = 4096
	// decodings is the maximum number of URL decodings for the check of a path.
	decodings = 3
)

// Clean checks a path from a workflow and returns its shortest form: relative, with
// slashes, "." for the root itself. It refuses, with permission_denied, absolute paths,
// "..", elements that other programs can take for "..", as in "....//" and "..;/",
// protocol and drive prefixes, backslashes, control and invisible characters, the
// characters <>"|?* and look-alikes of dots and slashes, also after up to three rounds of
// URL decoding. The result is not decoded. An empty path, or a path that contains the
// character NUL, even encoded, is a validation_error.
func Clean(given string) (string, error) {
	if given == "" {
		return "", tea.Errorf(tea.ValidationError, "the path is empty")
	}
	if len(given) > maxPath {
		return "", tea.Errorf(tea.ValidationError, "the path is longer than %d bytes", maxPath)
	}
	form := given
	for range decodings {
		if err := refused(given, form); err != nil {
			return "", err
		}
		decoded := decode(form)
		if decoded == form {
			return path.Clean(given), nil
		}
		form = decoded
	}
	if err := refused(given, form); err != nil {
		return "", err
	}
	if decode(form) != form {
		return "", refusal(given, "is URL-encoded too many times")
	}
	return path.Clean(given), nil
}

// refused returns the error for a decoded form of a path.
func refused(given, form string) error {
	if strings.Contains(form, "\x00") {
		return tea.Errorf(tea.ValidationError, "path %q contains the character NUL, which no path can have", given)
	}
	if fault := faultOf(form); fault != "" {
		return refusal(given, fault)
	}
	return nil
}

func refusal(given, fault string) error {
	e := tea.Errorf(tea.PermissionDenied, "path %q %s", given, fault)
	e.Details = map[string]any{"path": strings.ToValidUTF8(given, "\ufffd")}
	return e
}

// decode decodes one layer of URL encoding. An invalid sequence, as in "100%", is left
// unchanged while others are decoded.
func decode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// faultOf returns why a path is refused, or "".
func faultOf(p string) string {
	switch {
	case !utf8.ValidString(p):
		return "is not valid UTF-8"
	case strings.HasPrefix(p, "/"):
		return "is absolute; use a path relative to the root"
	case strings.HasPrefix(p, "~"):
		return "begins with ~, which is not expanded; use a path relative to the root"
	case hasScheme(p):
		return "begins with a protocol or drive"
	}
	for _, r := range p {
		if isOdd(r) {
			return "contains the character " + quoteRune(r) + ", which is not allowed"
		}
	}
	for element := range strings.SplitSeq(p, "/") {
		element = strings.TrimSpace(element)
		if element == ".." {
			return "contains .., which can lead out of the root"
		}
		// Filters that remove "../" once, and servers that cut parameters, read these as "..".
		if strings.HasPrefix(element, "..;") || len(element) > 3 && strings.Trim(element, ".") == "" {
			return "contains " + element + ", which some programs take for .."
		}
	}
	return ""
}

func quoteRune(r rune) string {
	if unicode.IsPrint(r) {
		return string(r)
	}
	return strings.Trim(strings.ToUpper(url.PathEscape(string(r))), " ")
}

// hasScheme reports whether p begins like file: or C:. A colon elsewhere, as in
// a time stamp, is allowed.
func hasScheme(p string) bool {
	for i, c := range []byte(p) {
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return i > 0 && c == ':'
		}
	}
	return false
}

func isOdd(r rune) bool {
	switch r {
	case '\\', '<', '>', '"', '|', '?', '*':
		return true
	case '\u2024', '\u2025', '\uff0e', '\ufe52', '\u2044', '\u2215', '\u29f8', '\uff0f', '\uff3c', '\ufe68', '\u29f5', '\ufffd':
		return true // look-alikes of dots, slashes and backslashes
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
