package httpactions

import (
	"context"
	"net/http"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Bundle gives the bundle http.
func Bundle(version string) *tea.Bundle {
	return &tea.Bundle{
		Name: "http", Version: version, Description: "Calls HTTP servers.",
		Settings: map[string]*schema.Schema{"http": schema.Of[Settings]()},
		Open: func(_ context.Context, settings tea.Settings) (any, error) {
			return newClient(settings, version)
		},
		Actions: []tea.Action{
			method(http.MethodGet, "Fetches a URL.", tea.Idempotent()),
			method(http.MethodPost, "Sends data to a URL."),
			method(http.MethodPut, "Stores data at a URL.", tea.Idempotent()),
			method(http.MethodPatch, "Changes what is at a URL."),
			method(http.MethodDelete, "Deletes what is at a URL.", tea.Idempotent()),
			tea.NewMethod("http.request", "Calls a URL with any method.", (*client).request),
		},
	}
}

// result is an answer that is no error.
type result struct {
	Success bool              `json:"success" doc:"always true"`
	Status  int               `json:"status" doc:"the HTTP status"`
	Headers map[string]string `json:"headers" doc:"the answer's headers by lower-case name"`
	Body    any               `json:"body" doc:"the body: a value where it is JSON, else the text; null where it is empty"`
	Text    string            `json:"text" doc:"the body as text"`
}

// method makes the action of one HTTP method. POST and PATCH carry the call's
// idempotency key in the header Idempotency-Key, unless one is given.
func method(name, summary string, options ...tea.Option) tea.Action {
	send := func(c *client, ctx context.Context, req *tea.Request, p CallParams) (result, error) {
		return c.send(ctx, name, req, p)
	}
	return tea.NewMethod("http."+strings.ToLower(name), summary, send, options...)
}

func (c *client) request(ctx context.Context, req *tea.Request, p requestParams) (result, error) {
	return c.send(ctx, strings.ToUpper(p.Method), req, p.CallParams)
}

func (c *client) send(ctx context.Context, method string, req *tea.Request, p CallParams) (result, error) {
	call, err := c.prepare(method, req, p)
	if err != nil {
		return result{}, err
	}
	a, err := c.do(ctx, call)
	if err != nil {
		return result{}, err
	}
	return result{Success: true, Status: a.status, Headers: a.headers(), Body: a.parsed(), Text: a.text()}, nil
}
