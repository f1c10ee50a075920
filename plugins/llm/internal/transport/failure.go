package transport

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
)

// maxErrorBody and maxErrorText bound what is read of a failure and what of
// it gets into a message.
const (
	maxErrorBody = 64 << 10
	maxErrorText = 1000
)

// statusError words an answer whose status is no success.
func statusError(resp *http.Response) *tea.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what there is of it is still a message
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return tea.Errorf(tea.ValidationError, "the server redirects to %s; set api_base to the address it names", resp.Header.Get("Location"))
	}
	e := newFailure(resp.StatusCode, toReport(body))
	e.Message = fmt.Sprintf("HTTP %d: %s", resp.StatusCode, e.Message)
	e.Details["status"] = int64(resp.StatusCode)
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	return e
}

// IsRefusal tells whether a server found fault with the request itself: the
// same request will be refused again.
func IsRefusal(err error) bool {
	e := tea.AsError(err)
	return e != nil && e.Type == tea.ValidationError && e.Details["status"] != nil
}

// IsError tells whether the member error of an answer reports one: servers
// also send it empty.
func IsError(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "{}", "[]", `""`, "false":
		return false
	}
	return true
}

// StreamError words the error that a server sent where a piece of its answer,
// or an answer, was expected.
func StreamError(raw []byte) *tea.Error {
	r := toReport(raw)
	return newFailure(r.status(), r)
}

// report is what servers say about a failure, whatever shape they give it.
type report struct {
	message, code, kind string
}

// toReport reads {"error": {...}}, {"error": "text"}, {"message": "text"},
// {"detail": "text"}, a list with one of these, or plain text.
func toReport(body []byte) report {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var envelope struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &envelope) == nil && len(envelope.Error) > 0 && string(envelope.Error) != "null" {
		return reportOf(envelope.Error)
	}
	return reportOf(body)
}

func reportOf(raw []byte) report {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return report{message: text}
	}
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil {
		text = string(raw)
		if title, isPage := titleOf(text); isPage {
			text = title
		}
		return report{message: text}
	}
	r := report{code: scalar(object["code"]), kind: scalar(object["type"])}
	for _, name := range []string{"message", "detail", "error", "msg"} {
		if text, ok := object[name].(string); ok && text != "" {
			r.message = text
			return r
		}
	}
	r.message = string(raw)
	return r
}

func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// statusOf gives the codes that servers use in a stream the status that they
// would have sent in front of it.
var statusOf = map[string]int{
	"rate_limit_exceeded":       http.StatusTooManyRequests,
	"rate_limit_error":          http.StatusTooManyRequests,
	"insufficient_quota":        http.StatusTooManyRequests,
	"invalid_request_error":     http.StatusBadRequest,
	"context_length_exceeded":   http.StatusBadRequest,
	"exceed_context_size_error": http.StatusBadRequest,
	"content_filter":            http.StatusBadRequest,
	"BadRequestError":           http.StatusBadRequest,
	"invalid_api_key":           http.StatusUnauthorized,
	"authentication_error":      http.StatusUnauthorized,
	"permission_error":          http.StatusForbidden,
	"model_not_found":           http.StatusNotFound,
	"not_found_error":           http.StatusNotFound,
}

// status is the HTTP status that fits the report; 500 where nothing says more.
func (r report) status() int {
	for _, word := range []string{r.code, r.kind} {
		if n, err := strconv.Atoi(word); err == nil && n >= 400 && n < 600 {
			return n
		}
		if n, ok := statusOf[word]; ok {
			return n
		}
	}
	return http.StatusInternalServerError
}

// newFailure gives a failure its type and says whether it may pass.
func newFailure(status int, r report) *tea.Error {
	e := &tea.Error{Message: strings.TrimSpace(strings.ToValidUTF8(r.message, "\ufffd")), Details: map[string]any{}}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Type = tea.PermissionDenied
	case status == http.StatusNotFound:
		e.Type = tea.NotFound
	case status == http.StatusTooManyRequests:
		e.Type, e.Retryable = tea.RateLimited, r.code != "insufficient_quota" && r.kind != "insufficient_quota"
	case status == http.StatusRequestTimeout:
		e.Type, e.Retryable = tea.Timeout, true
	case status == http.StatusConflict || status >= 500:
		e.Type, e.Retryable = tea.ConnectionError, true
	default:
		e.Type = tea.ValidationError
	}
	if e.Message == "" {
		e.Message = http.StatusText(status)
	}
	for name, text := range map[string]string{"code": r.code, "kind": r.kind} {
		if text != "" {
			e.Details[name] = text
		}
	}
	return e
}

// connectionError words what went wrong below HTTP. The request's address is
// left out: it is the error's source, and it may hold a key.
func connectionError(err error) *tea.Error {
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return tea.Errorf(tea.ConnectionError, "the server closed the connection before its answer was complete: %v", err)
	}
	e := tea.Errorf(tea.ConnectionError, "cannot talk to the model server: %v", err)
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		e.Retryable = false
	}
	return e
}

// redact replaces secrets in everything that an error shows.
func redact(e *tea.Error, secrets []string) {
	var pairs []string
	for _, secret := range secrets {
		if secret != "" {
			pairs = append(pairs, secret, "***")
		}
	}
	if len(pairs) == 0 {
		return
	}
	r := strings.NewReplacer(pairs...)
	e.Message = r.Replace(e.Message)
	details := make(map[string]any, len(e.Details))
	for name, v := range e.Details {
		if text, ok := v.(string); ok {
			v = r.Replace(text)
		}
		details[name] = v
	}
	e.Details = details
}

// shorten cuts a text between two characters.
func shorten(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	end := maxErrorText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}
