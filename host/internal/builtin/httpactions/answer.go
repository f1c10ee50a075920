package httpactions

import (
	"fmt"
	"mime"
	"net/textproto"
	"slices"
	"strings"
	"time"

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
	status int
	reason string // the text of the status
	header textproto.MIMEHeader
	body   []byte
}

// check returns the error for an unexpected status, nil otherwise.
func (a *answer) check(call *call) error {
	if len(call.expected) == 0 && a.status < 400 || slices.Contains(call.expected, a.status) {
		return nil
	}
	kind, retryable := httpstatus.ErrorType(a.status)
	e := tea.Errorf(kind, "%s %s: %s", call.method, plainURL(call.url), strings.TrimSpace(fmt.Sprintf("status %d %s", a.status, a.reason)))
	if text := strings.TrimSpace(cut(a.text(), bodyInMessage)); text != "" {
		e.Message += ": " + text
	}
	e.Source, e.Retryable = call.url.Host, retryable
	if retryable {
		e.RetryAfter = httpstatus.RetryAfter(a.header, time.Now())
	}
	e.Details = map[string]any{"status": a.status, "body": cut(a.text(), bodyInDetails), "url": plainURL(call.url)}
	return e
}

// text returns the body as valid UTF-8.
func (a *answer) text() string {
	_, params, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	switch strings.ToLower(params["charset"]) {
	case "iso-8859-1", "latin1", "latin-1":
		runes := make([]rune, len(a.body))
		for i, c := range a.body {
			runes[i] = rune(c)
		}
		return string(runes)
	}
	return strings.ToValidUTF8(string(a.body), "\ufffd")
}

// parsed returns the body as a value if its content type is JSON and it is
// valid; the text otherwise; nil if it is empty.
func (a *answer) parsed() any {
	if len(a.body) == 0 {
		return nil
	}
	if isJSON(a.header.Get("Content-Type")) {
		if v, err := value.Decode([]byte(strings.TrimPrefix(string(a.body), "\ufeff"))); err == nil {
			return v
		}
	}
	return a.text()
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
