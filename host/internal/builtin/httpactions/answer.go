package httpactions

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"mime"
	"net/textproto"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/httpstatus"
)

const (
	// bodyInDetails and bodyInMessage bound the part of a response that the error
	// of a failed call contains.
	bodyInDetails = 4 << 10
	bodyInMessage = 200
)

// answer is a server's response.
type answer struct {
	redirected bool // the request was answered, and this answers another one
	status     int
	reason     string // the text of the status
	header     textproto.MIMEHeader
	body       []byte
}

// check returns the error for an unexpected status, nil otherwise.
func (a *answer) check(call *call) error {
	if len(call.expected) == 0 && a.status < 400 || slices.Contains(call.expected, a.status) {
		return nil
	}
	kind, retryable := httpstatus.ErrorType(a.status)
	e := tea.Errorf(kind, "%s %s: %s", call.method, plainURL(call.url), strings.TrimSpace(fmt.Sprintf("status %d %s", a.status, a.reason)))
	body, isText := a.text(a.body[:value.WholeRunes(string(a.body))])
	if !isText {
		body = fmt.Sprintf("(%d bytes that are not text)", len(a.body))
	}
	if text := strings.TrimSpace(cut(body, bodyInMessage)); text != "" {
		e.Message += ": " + text
	}
	e.Source, e.Retryable = call.url.Host, retryable
	if retryable {
		e.RetryAfter = httpstatus.RetryAfter(a.header, time.Now())
	}
	e.Details = map[string]any{"status": a.status, "body": cut(body, bodyInDetails), "url": plainURL(call.url)}
	if a.redirected {
		return afterAnswer(e, call.method)
	}
	return e
}

// c1 are the characters of windows-1252 in place of the control characters from 0x80
// that latin-1 has there. Servers declare either charset for the other.
var c1 = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

// text decodes data from the charset that the server declares, UTF-8 by default. ok
// is false if data is not text in that charset, or the charset is not supported.
func (a *answer) text(data []byte) (text string, ok bool) {
	switch charsetOf(a.header) {
	case "iso-8859-1", "latin1", "latin-1", "windows-1252":
		runes := make([]rune, len(data))
		for i, c := range data {
			runes[i] = rune(c)
			if c >= 0x80 && int(c)-0x80 < len(c1) {
				runes[i] = c1[c-0x80]
			}
		}
		return string(runes), true
	case "utf-8":
		return string(data), utf8.Valid(data)
	}
	return string(data), isASCII(data)
}

// charsetOf returns the lower-case name of the charset of a body.
func charsetOf(header textproto.MIMEHeader) string {
	_, params, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return cmp.Or(strings.Replace(strings.ToLower(params["charset"]), "utf8", "utf-8", 1), "utf-8")
}

// isASCII reports whether data is the same text in all charsets: some use NUL or
// escape characters for other text.
func isASCII(data []byte) bool {
	return bytes.IndexFunc(data, func(r rune) bool { return r >= utf8.RuneSelf || r == 0 || r == 0x1b }) < 0
}

// decoded returns the body as a value if its content type is JSON and it is valid,
// the text otherwise, nil if it is empty; and the text. If the body is not text,
// body is its base64 form and encoding is "base64".
func (a *answer) decoded() (body any, text, encoding string) {
	if len(a.body) == 0 {
		return nil, "", ""
	}
	text, ok := a.text(a.body)
	if !ok {
		return base64.StdEncoding.EncodeToString(a.body), "", "base64"
	}
	if isJSON(a.header.Get("Content-Type")) {
		if v, err := value.Decode([]byte(strings.TrimPrefix(text, "\ufeff"))); err == nil {
			return v, text, ""
		}
	}
	return text, text, ""
}

func isJSON(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}

// headers returns the header lines by lower-case name; repeated ones are
// joined.
func (a *answer) headers() map[string]string {
	headers := make(map[string]string, len(a.header))
	for name, texts := range a.header {
		headers[strings.ToLower(name)] = strings.Join(texts, ", ")
	}
	return headers
}

// cut shortens text to at most limit bytes, between characters.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes in total)", text[:value.WholeRunes(text[:limit])], len(text))
}
