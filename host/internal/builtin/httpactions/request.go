package httpactions

import (
	"encoding/json"
	"errors"
	"net/textproto"
	"net/url"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// CallParams are the parameters of http.get, post, put, patch and delete.
type CallParams struct {
	URL             string          `json:"url" doc:"the URL: http:// or https://"`
	Headers         map[string]any  `json:"headers,omitempty" doc:"request headers; POST and PATCH send the call's key in Idempotency-Key, unless it is set here"`
	Query           map[string]any  `json:"query,omitempty" doc:"added to the URL's query; a list repeats the name, null is omitted"`
	JSON            json.RawMessage `json:"json,omitempty" doc:"a value to send as JSON; excludes body"`
	Body            *string         `json:"body,omitempty" doc:"text to send"`
	Timeout         *float64        `json:"timeout_seconds,omitempty" minimum:"0" doc:"timeout of the whole call, including redirects and body; default 30, or settings.http.timeout_seconds"`
	FollowRedirects bool            `json:"follow_redirects,omitempty" default:"true" doc:"whether to follow redirects; otherwise they are the response"`
	ExpectStatus    statusList      `json:"expect_status,omitempty" doc:"the statuses that are not an error: one or a list. Default: all below 400"`
}

// requestParams are the parameters of http.request.
type requestParams struct {
	Method string `json:"method,omitempty" default:"GET" pattern:"^[A-Za-z]+$" doc:"the HTTP method"`
	CallParams
}

// statusList is one status or a list of them.
type statusList []int

// JSONSchema returns the schema of both forms.
func (statusList) JSONSchema() *schema.Schema {
	low, high := 100.0, 599.0
	one := &schema.Schema{Type: schema.Types{"integer"}, Minimum: &low, Maximum: &high}
	return &schema.Schema{AnyOf: []*schema.Schema{one, {Type: schema.Types{"array"}, Items: one}}}
}

// UnmarshalJSON accepts both forms.
func (l *statusList) UnmarshalJSON(data []byte) error {
	var one int
	if json.Unmarshal(data, &one) == nil {
		*l = statusList{one}
		return nil
	}
	return json.Unmarshal(data, (*[]int)(l))
}

// prepare checks the parameters and returns the call.
func (c *client) prepare(method string, req *tea.Request, p CallParams) (*call, error) {
	u, err := url.Parse(p.URL)
	if err != nil && !strings.Contains(p.URL, "://") { // such as 127.0.0.1:80
		return nil, tea.Errorf(tea.ValidationError, "url: it must begin with http:// or https://")
	}
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "url: %w", unquoted(err))
	}
	if err := c.hosts.check(u); err != nil {
		return nil, err
	}
	if err := addQuery(u, p.Query); err != nil {
		return nil, err
	}
	seconds := c.settings.Timeout
	if p.Timeout != nil {
		seconds = *p.Timeout
	}
	timeout, err := duration(seconds)
	if err != nil {
		return nil, err
	}
	if p.JSON != nil && p.Body != nil {
		return nil, tea.Errorf(tea.ValidationError, "json and body cannot be combined")
	}
	header, err := c.headerOf(method, req, p)
	if err != nil {
		return nil, err
	}
	call := &call{method: method, url: u, header: header, timeout: timeout, followRedirects: p.FollowRedirects, expected: p.ExpectStatus}
	switch {
	case p.JSON != nil:
		call.body = p.JSON
	case p.Body != nil:
		call.body = []byte(*p.Body)
	}
	return call, nil
}

// unquoted removes the URL, which can contain a secret, from url.Parse's error.
func unquoted(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func (c *client) headerOf(method string, req *tea.Request, p CallParams) (textproto.MIMEHeader, error) {
	header := textproto.MIMEHeader{}
	header.Set("User-Agent", c.settings.UserAgent)
	for name, text := range c.settings.Headers {
		header.Set(name, text)
	}
	for name, v := range p.Headers {
		texts, err := textsOf(v)
		if err != nil {
			return nil, tea.Errorf(tea.ValidationError, "headers.%s: %s", name, tea.AsError(err).Message)
		}
		header.Del(name)
		for _, text := range texts {
			if !isToken(name) || strings.ContainsAny(text, "\r\n\x00") {
				return nil, tea.Errorf(tea.ValidationError, "headers.%s: the name of a header must be one word, its value one line", name)
			}
			header.Add(name, text)
		}
	}
	if p.JSON != nil {
		setDefault(header, "Content-Type", "application/json")
		setDefault(header, "Accept", "application/json")
	}
	if p.Body != nil {
		setDefault(header, "Content-Type", "text/plain; charset=utf-8")
		if charset := charsetOf(header); charset != "utf-8" && !isASCII([]byte(*p.Body)) {
			return nil, tea.Errorf(tea.ValidationError, "headers.Content-Type has the charset %s, but a body that is not ASCII is sent as UTF-8", charset)
		}
	}
	// A server that supports the header processes the call once, even if it is
	// repeated after a crash or a lost response.
	if req.IdempotencyKey != "" && (method == "POST" || method == "PATCH") {
		setDefault(header, "Idempotency-Key", req.IdempotencyKey)
	}
	return header, nil
}

// isToken reports whether name is a valid header name (RFC 9110).
func isToken(name string) bool {
	return name != "" && strings.Trim(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

func setDefault(header textproto.MIMEHeader, name, text string) {
	if header.Values(name) == nil {
		header.Set(name, text)
	}
}

func addQuery(u *url.URL, query map[string]any) error {
	if len(query) == 0 {
		return nil
	}
	added := url.Values{}
	for name, v := range query {
		texts, err := textsOf(v)
		if err != nil {
			return tea.Errorf(tea.ValidationError, "query.%s: %s", name, tea.AsError(err).Message)
		}
		if len(texts) > 0 {
			added[name] = texts
		}
	}
	if u.RawQuery != "" && len(added) > 0 {
		u.RawQuery += "&"
	}
	u.RawQuery += added.Encode()
	return nil
}

// textsOf converts a scalar, or each scalar of a list, to text; null is none.
func textsOf(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []any:
		var texts []string
		for _, e := range v {
			if _, nested := e.([]any); nested {
				return nil, tea.Errorf(tea.ValidationError, "expected text or a list of texts")
			}
			more, err := textsOf(e)
			if err != nil {
				return nil, err
			}
			texts = append(texts, more...)
		}
		return texts, nil
	case map[string]any:
		return nil, tea.Errorf(tea.ValidationError, "expected text, got an object")
	}
	raw, err := value.Encode(v)
	return []string{string(raw)}, err
}
