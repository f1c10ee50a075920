package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/httpstatus"
)

// ContentFiltered is the error type of a request that the server's content filter refused.
const ContentFiltered tea.ErrorType = "content_filter"

// maxErrorBody bounds the part of a failure that is read, maxErrorText the part that is
// included in a message.
const (
	maxErrorBody = 64 << 10
	maxErrorText = 1000
)

// statusError returns the error for a response without a success status.
func statusError(resp *http.Response) *tea.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part of it is still a message
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return tea.Errorf(tea.ValidationError, "the server redirects to %s; set api_base to the address it names", resp.Header.Get("Location"))
	}
	report := toReport(body)
	e := newFailure(resp.StatusCode, report)
	e.Message = fmt.Sprintf("HTTP %d: %s", resp.StatusCode, e.Message)
	e.Details["status"] = int64(resp.StatusCode)
	e.RetryAfter = cmp.Or(httpstatus.RetryAfter(resp.Header, time.Now()), report.wait)
	if again, err := strconv.ParseBool(resp.Header.Get("X-Should-Retry")); err == nil {
		e.Retryable = again // model services know better than their status
	}
	return e
}

// IsRejection reports whether a server rejected the request itself, so that the same request
// will be rejected again.
func IsRejection(err error) bool {
	e := tea.AsError(err)
	return e != nil && e.Type == tea.ValidationError && e.Details["status"] != nil
}

// IsError reports whether the member error of a response contains an error: servers also
// send it empty.
func IsError(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "{}", "[]", `""`, "false":
		return false
	}
	return true
}

// StreamError returns the error that a server sent instead of a response or a part of it.
func StreamError(raw []byte) *tea.Error {
	r := toReport(raw)
	return newFailure(r.status(), r)
}

// report is a server's description of a failure, in any format.
type report struct {
	message, code, kind string
	// wait is how long the server asks to wait.
	wait time.Duration
}

// toReport reads {"error": {...}}, {"error": "text"}, {"message": "text"},
// {"detail": "text"}, {"detail": {"error": "text"}}, a list with one of these,
// or plain text.
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
	r := report{code: scalar(object["code"]), kind: cmp.Or(scalar(object["type"]), scalar(object["status"]))}
	r.addDetails(object["details"])
	for _, name := range []string{"message", "detail", "error", "msg"} {
		v := object[name]
		if inner, ok := v.(map[string]any); ok {
			v = inner["error"] // {"detail": {"error": "text"}}
		}
		if text, ok := v.(string); ok && text != "" {
			r.message = text
			return r
		}
	}
	r.message = string(raw)
	return r
}

// addDetails reads the list of details that Google's servers send: the reason, and the
// time to wait.
func (r *report) addDetails(v any) {
	details, _ := v.([]any)
	for _, v := range details {
		detail, _ := v.(map[string]any)
		if reason := scalar(detail["reason"]); reason != "" {
			r.kind = reason
		}
		if wait, err := time.ParseDuration(scalar(detail["retryDelay"])); err == nil {
			r.wait = max(wait, 0)
		}
	}
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

// status returns the HTTP status that corresponds to the report; 500 if unknown.
func (r report) status() int {
	for _, word := range []string{r.code, r.kind} {
		if n, err := strconv.Atoi(word); err == nil && n >= 400 && n < 600 {
			return n
		}
		switch word { // codes that servers use in a stream
		case "rate_limit_exceeded", "rate_limit_error", "insufficient_quota":
			return http.StatusTooManyRequests
		case "invalid_request_error", "context_length_exceeded", "exceed_context_size_error", "content_filter", "content_policy_violation", "BadRequestError":
			return http.StatusBadRequest
		case "invalid_api_key", "API_KEY_INVALID", "authentication_error":
			return http.StatusUnauthorized
		case "permission_error":
			return http.StatusForbidden
		case "model_not_found", "not_found_error":
			return http.StatusNotFound
		case "request_too_large":
			return http.StatusRequestEntityTooLarge
		case "billing_error":
			return http.StatusPaymentRequired
		case "overloaded_error":
			return 529
		}
	}
	return http.StatusInternalServerError
}

// isFiltered reports whether a content filter refused the request.
func (r report) isFiltered() bool {
	for _, word := range []string{r.code, r.kind} {
		if word == "content_filter" || word == "content_policy_violation" {
			return true
		}
	}
	return false
}

// newFailure classifies a failure and decides whether it is retryable.
func newFailure(status int, r report) *tea.Error {
	if r.kind == "API_KEY_INVALID" { // sent with the status 400
		status = http.StatusUnauthorized
	}
	e := &tea.Error{Message: strings.TrimSpace(strings.ToValidUTF8(r.message, "\ufffd")), Details: map[string]any{}}
	switch {
	case r.isFiltered():
		e.Type = ContentFiltered
	case status == http.StatusPaymentRequired || r.code == "insufficient_quota" || r.kind == "insufficient_quota":
		e.Type = tea.RateLimited // the account has no credit
	default:
		e.Type, e.Retryable = httpstatus.ErrorType(status)
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

// connectionError returns the error for a failure below HTTP. It omits the request's
// address, which is the error's source and may contain a key.
func connectionError(err error) *tea.Error {
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return tea.Errorf(tea.ConnectionError, "the server closed the connection before its answer was complete: %v", err)
	}
	e := tea.Errorf(tea.ConnectionError, "the connection to the server failed: %v", err)
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		e.Retryable = false
	}
	return e
}

// Interrupted marks an error of consume after pieces of the response were emitted, because a
// retry would emit them twice. If no piece was emitted, it returns err unchanged.
func Interrupted(err error, pieces int) error {
	if pieces == 0 {
		return err
	}
	return &interrupted{err: err, pieces: pieces}
}

type interrupted struct {
	err    error
	pieces int
}

func (i *interrupted) Error() string { return i.err.Error() }
func (i *interrupted) Unwrap() error { return i.err }

// WasInterrupted reports whether a failure occurred after pieces of a response were emitted.
func WasInterrupted(e *tea.Error) bool { return e.Details["tokens"] != nil }

// toFailure converts any error of an attempt to a failure with a source and without secrets.
func (s *Server) toFailure(ctx context.Context, err error) *tea.Error {
	var failure, known *tea.Error
	switch {
	case errors.As(err, &known):
		failure = known
	case ctx.Err() != nil:
		failure = contextError(ctx)
	default:
		failure = connectionError(err)
	}
	clean := *failure
	if u, err := url.Parse(s.Base); err == nil {
		clean.Source = u.Host
	}
	clean.Details = map[string]any{}
	maps.Copy(clean.Details, failure.Details)
	var broken *interrupted
	if errors.As(err, &broken) {
		clean.Message = fmt.Sprintf("the answer broke off after %d tokens: %s", broken.pieces, clean.Message)
		clean.Details["tokens"] = int64(broken.pieces)
	}
	redact(&clean, s.Secrets)
	clean.Message = shorten(clean.Message) // after masking, which would not find half a secret
	return &clean
}

// shorten truncates a text between two characters.
func shorten(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	return text[:value.WholeRunes(text[:maxErrorText])] + "..."
}

// These are compiled on use, not at the start of every plugin with an HTTP client.
const (
	pageStart = `(?i)^\s*<(!doctype html|html)\b`
	pageTitle = `(?is)<title[^>]*>(.*?)</title>`
)

// titleOf returns the title of a web page, "" if there is none; isPage reports whether the
// text is a web page. A proxy in front of a server returns such a page, whose markup is of no
// use.
func titleOf(text string) (title string, isPage bool) {
	if !regexp.MustCompile(pageStart).MatchString(text) {
		return "", false
	}
	if found := regexp.MustCompile(pageTitle).FindStringSubmatch(text); found != nil {
		title = strings.TrimSpace(html.UnescapeString(found[1]))
	}
	return title, true
}

// NotAnAnswer returns the error for a body that could not be read as the expected response
// because of err. A web page, which comes from a login, a proxy or a router, is identified by
// its title and is not retryable.
func NotAnAnswer(body []byte, expected string, err error) *tea.Error {
	title, isPage := titleOf(string(body[:min(len(body), maxErrorBody)]))
	switch {
	case isPage && title != "":
		return webPage(fmt.Sprintf("a web page (%q)", title))
	case isPage:
		return webPage("a web page")
	case len(bytes.TrimSpace(body)) == 0:
		return tea.Errorf(tea.ConnectionError, "the server sent nothing instead of %s", expected)
	}
	return tea.Errorf(tea.ConnectionError, "the server did not send %s: %w", expected, err)
}

func webPage(page string) *tea.Error {
	e := tea.Errorf(tea.ConnectionError, "the server sent %s instead of an answer; check api_base", page)
	e.Retryable = false
	return e
}

// WebPage returns the error for a stream without a response whose content type is a web page.
func WebPage() *tea.Error { return webPage("a web page") }

// IsPage reports whether the content type of the response is a web page. It is not reliable:
// use it only to explain a response that cannot be read.
func (r Reply) IsPage() bool {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return kind == "text/html"
}
