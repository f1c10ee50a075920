package extract

import (
	"bytes"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

// declared finds the charset in a meta element or an XML declaration.
var declared = regexp.MustCompile(`(?i)(?:<meta[^>]{0,200}?charset\s*=\s*|<\?xml[^>]{0,100}?encoding\s*=\s*)["']?\s*([a-z0-9_:-]{2,40})`)

const (
	// declarationBytes is the part of a page that is searched for a declaration.
	declarationBytes = 8 << 10
	// guessBytes is the part of a page that a guess is based on.
	guessBytes = 64 << 10
	// minConfidence is the minimum confidence of a guess, in percent.
	minConfidence = 30
)

// decodeCharset converts a body to UTF-8. The charset comes from a byte order mark, from
// the Content-Type header, or from the page's declaration, in this order; otherwise UTF-8
// if it fits, or a guess. A declaration that the bytes contradict is ignored.
func decodeCharset(body []byte, contentType string) string {
	decoded, err := findEncoding(body, contentType).NewDecoder().Bytes(body)
	if err != nil {
		decoded = body
	}
	decoded = bytes.TrimPrefix(decoded, []byte("\ufeff"))
	text := strings.ToValidUTF8(string(decoded), "\ufffd")
	return strings.ReplaceAll(text, "\x00", "")
}

func findEncoding(body []byte, contentType string) encoding.Encoding {
	if e := byteOrderMark(body); e != nil {
		return e
	}
	valid := isMostlyUTF8(body)
	isUTF8 := valid && !isASCII(body) // text in another charset is hardly ever valid UTF-8
	_, params, _ := mime.ParseMediaType(contentType)
	for _, name := range []string{params["charset"], declaration(body)} {
		e, canonical := charset.Lookup(name)
		isUTF16 := strings.HasPrefix(canonical, "utf-16")
		switch {
		case e == nil || canonical == "replacement": // absent, unknown, or not supported by browsers
			continue
		case canonical == "utf-8" && !valid:
			continue
		case isUTF16 && (name != params["charset"] || valid && bytes.IndexByte(body, 0) < 0):
			continue // the declaration was read as ASCII, or markup has no zero bytes
		case isUTF8 && canonical != "utf-8" && !isUTF16:
			continue
		}
		return e
	}
	if valid {
		return encoding.Nop
	}
	guess, err := chardet.NewHtmlDetector().DetectBest(body[:min(len(body), guessBytes)])
	if err == nil && guess.Confidence >= minConfidence {
		if e, canonical := charset.Lookup(guess.Charset); e != nil && canonical != "utf-8" {
			return e
		}
	}
	e, _ := charset.Lookup("windows-1252")
	return e
}

// isMostlyUTF8 reports whether a body is UTF-8, perhaps with a few broken characters:
// in another charset, most characters beyond ASCII are not valid UTF-8.
func isMostlyUTF8(body []byte) bool {
	if utf8.Valid(body) {
		return true
	}
	valid, broken := 0, 0
	for len(body) > 0 {
		r, size := utf8.DecodeRune(body)
		switch {
		case r == utf8.RuneError && size == 1:
			broken++
		case size > 1:
			valid++
		}
		body = body[size:]
	}
	return valid > 10*broken
}

func isASCII(body []byte) bool {
	for _, b := range body {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func byteOrderMark(body []byte) encoding.Encoding {
	name := ""
	switch {
	case bytes.HasPrefix(body, []byte{0xef, 0xbb, 0xbf}):
		name = "utf-8"
	case bytes.HasPrefix(body, []byte{0xfe, 0xff}):
		name = "utf-16be"
	case bytes.HasPrefix(body, []byte{0xff, 0xfe}):
		name = "utf-16le"
	}
	e, _ := charset.Lookup(name)
	return e
}

func declaration(body []byte) string {
	m := declared.FindSubmatch(body[:min(len(body), declarationBytes)])
	if m == nil {
		return ""
	}
	return string(m[1])
}
