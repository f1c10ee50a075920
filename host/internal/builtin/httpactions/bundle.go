package httpactions

import (
	"context"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Bundle returns the bundle http.
func Bundle(version string) *tea.Bundle {
	// The actions differ only in their method and share one schema.
	call := tea.NewMethod("http.call", "", (*client).call)
	method := func(name, summary string, idempotent bool) tea.Action {
		a := call
		a.Name, a.Summary, a.Idempotent, a.Reads = "http."+name, summary, idempotent, name == "get"
		return a
	}
	return &tea.Bundle{
		Name: "http", Version: version, Description: "Calls HTTP servers.",
		Settings: map[string]*schema.Schema{"http": schema.Of[Settings]()},
		Open: func(_ context.Context, settings tea.Settings) (any, error) {
			return newClient(settings, version)
		},
		Actions: []tea.Action{
			method("get", "Fetches a URL.", true),
			method("post", "Sends data to a URL.", false),
			method("put", "Stores data at a URL.", true),
			method("patch", "Changes what is at a URL.", false),
			method("delete", "Deletes what is at a URL.", true),
			tea.NewMethod("http.request", "Calls a URL with any method.", (*client).request),
		},
	}
}

// result is a successful response.
type result struct {
	Success  bool              `json:"success" doc:"always true"`
	Status   int               `json:"status" doc:"the HTTP status"`
	Headers  map[string]string `json:"headers" doc:"the response headers by lower-case name"`
	Body     any               `json:"body" doc:"the body: a value if it is JSON, else the text, or base64 if it is not text; null if it is empty"`
	Text     string            `json:"text" doc:"the body as text, decoded from the charset of its content type"`
	Encoding string            `json:"encoding,omitempty" enum:"base64" doc:"base64 if the body is not text, or in a charset other than UTF-8, latin-1 and windows-1252"`
}

// call sends a request with the method that the action is named after. POST and
// PATCH send the call's idempotency key in the header Idempotency-Key, unless
// the parameters set one.
func (c *client) call(ctx context.Context, req *tea.Request, p CallParams) (result, error) {
	_, method, _ := strings.Cut(req.Action, ".")
	return c.send(ctx, strings.ToUpper(method), req, p)
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
	r := result{Success: true, Status: a.status, Headers: a.headers()}
	r.Body, r.Text, r.Encoding = a.decoded()
	return r, nil
}
