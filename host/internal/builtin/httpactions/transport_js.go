package httpactions

import (
	"context"
	"errors"
	"net/textproto"
	"syscall/js"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/jspromise"
)

// transport calls the browser's fetch, which pools connections. Package net/http
// can use fetch too, but takes up a third of a program for browsers.
type transport struct{ client *client }

func newTransport(c *client) *transport { return &transport{c} }

// Close does nothing.
func (*transport) Close() error { return nil }

// exchange sends the call and reads the response, up to limit+1 bytes of the
// body: the last byte shows that the body is too long.
func (t *transport) exchange(ctx context.Context, call *call, limit int64) (*answer, error) {
	abort := js.Global().Get("AbortController").New()
	defer abort.Call("abort")
	resp, err := jspromise.Catch(func() js.Value {
		return js.Global().Call("fetch", call.url.String(), t.options(call, abort.Get("signal")))
	})
	if err == nil {
		resp, err = jspromise.Await(ctx, resp)
	}
	if err != nil {
		return nil, fetchError(ctx, call, err)
	}
	if resp.Get("type").String() == "opaqueredirect" {
		return nil, t.hiddenRedirect(call)
	}
	a := &answer{status: resp.Get("status").Int(), reason: resp.Get("statusText").String(), header: textproto.MIMEHeader{}}
	lines := js.Global().Get("Array").Call("from", resp.Get("headers"))
	for i := range lines.Length() {
		a.header.Add(lines.Index(i).Index(0).String(), lines.Index(i).Index(1).String())
	}
	if a.body, err = readStream(ctx, resp.Get("body"), limit+1); err != nil {
		return nil, fetchError(ctx, call, err)
	}
	return a, nil
}

// options returns the options of fetch. Cookies are not sent: a workflow sets
// its headers itself, as on other systems. A browser hides the target of a
// redirect, so redirects are followed only if all hosts are allowed.
func (t *transport) options(call *call, signal js.Value) map[string]any {
	headers := js.Global().Get("Headers").New()
	for name, texts := range call.header {
		if name == "User-Agent" {
			continue // the browser's own
		}
		for _, text := range texts {
			headers.Call("append", name, text)
		}
	}
	redirect := "follow"
	if !call.followRedirects || t.client.hosts != nil {
		redirect = "manual"
	}
	o := map[string]any{"method": call.method, "headers": headers, "redirect": redirect, "credentials": "omit", "signal": signal}
	if call.body != nil {
		o["body"] = jspromise.Array(call.body)
	}
	return o
}

func (t *transport) hiddenRedirect(call *call) error {
	if call.followRedirects {
		return tea.Errorf(tea.PermissionDenied, "%s %s: redirect refused: a browser does not report where it leads, so it cannot be compared with settings.http.allow_hosts", call.method, plainURL(call.url))
	}
	return tea.Errorf(tea.DependencyMissing, "%s %s: the response is a redirect, which a browser does not show; set follow_redirects: true", call.method, plainURL(call.url))
}

// readStream reads a ReadableStream, at most limit bytes.
func readStream(ctx context.Context, stream js.Value, limit int64) ([]byte, error) {
	if stream.IsNull() || stream.IsUndefined() {
		return nil, nil
	}
	var body []byte
	reader := stream.Call("getReader")
	for int64(len(body)) < limit {
		chunk, err := jspromise.Await(ctx, reader.Call("read"))
		if err != nil {
			return nil, err
		}
		if chunk.Get("done").Bool() {
			return body, nil
		}
		data, err := jspromise.Bytes(chunk.Get("value"))
		if err != nil {
			return nil, err
		}
		body = append(body, data...)
	}
	return body[:limit], nil
}

// fetchError converts a failure without a response to an action error.
func fetchError(ctx context.Context, call *call, err error) error {
	if ctx.Err() != nil {
		return tea.AsError(context.Cause(ctx))
	}
	var thrown *jspromise.Error
	if errors.As(err, &thrown) && thrown.Name == "TypeError" {
		err = errors.New("no response: the server cannot be reached, its certificate is not valid, or it does not allow this origin (CORS); a browser does not report which")
		if n := js.Global().Get("navigator"); n.Truthy() && n.Get("onLine").Equal(js.ValueOf(false)) {
			err = errors.New("the device is offline")
		}
	}
	e := connectionError(call, err)
	e.Retryable = true
	return e
}
