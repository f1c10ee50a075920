package httpactions_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/builtin/actiontest"
	"github.com/the-edge-agent/tea/host/internal/builtin/httpactions"
	tea "github.com/the-edge-agent/tea/sdk"
)

type (
	params = actiontest.Params
	list   = []any
)

func open(t *testing.T, settings params) *actiontest.Caller {
	t.Helper()
	return actiontest.Open(t, httpactions.Bundle("1.2.3"), params{"http": settings})
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// echo answers with what it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Add("X-Twice", "a")
	w.Header().Add("X-Twice", "b")
	io.WriteString(w, r.Method+" "+r.URL.RequestURI()+"\n")
	for _, name := range []string{"User-Agent", "Content-Type", "Accept", "Authorization", "Idempotency-Key", "X-One", "X-Def", "X-N"} {
		if values := r.Header.Values(name); values != nil {
			io.WriteString(w, name+": "+strings.Join(values, "|")+"\n")
		}
	}
	w.Write(body)
}

func TestRequests(t *testing.T) {
	t.Parallel()
	server := serve(t, echo)
	c := open(t, params{"headers": params{"X-Def": "d", "X-One": "settings"}})
	c.IdempotencyKey = "run-1/n"
	for _, test := range []struct {
		action string
		params params
		want   string
	}{
		{"http.get", params{"url": "/a?x=1#f", "query": params{"q": "ä b", "n": 3, "l": list{"1", 2, nil}, "no": nil}}, "GET /a?x=1&l=1&l=2&n=3&q=%C3%A4+b\nUser-Agent: tea/1.2.3\nX-One: settings\nX-Def: d\n"},
		{"http.get", params{"url": "/", "headers": params{"X-One": "call", "X-N": list{1, true}, "user-agent": "me"}}, "GET /\nUser-Agent: me\nX-One: call\nX-Def: d\nX-N: 1|true\n"},
		{"http.post", params{"url": "/", "json": params{"id": 9007199254740993}}, "POST /\nUser-Agent: tea/1.2.3\nContent-Type: application/json\nAccept: application/json\nIdempotency-Key: run-1/n\nX-One: settings\nX-Def: d\n{\"id\":9007199254740993}"},
		{"http.post", params{"url": "/", "json": nil, "headers": params{"idempotency-key": "mine"}}, "POST /\nUser-Agent: tea/1.2.3\nContent-Type: application/json\nAccept: application/json\nIdempotency-Key: mine\nX-One: settings\nX-Def: d\nnull"},
		{"http.put", params{"url": "/", "body": "text", "headers": params{"Content-Type": "text/csv"}}, "PUT /\nUser-Agent: tea/1.2.3\nContent-Type: text/csv\nX-One: settings\nX-Def: d\ntext"},
		{"http.patch", params{"url": "/", "body": ""}, "PATCH /\nUser-Agent: tea/1.2.3\nContent-Type: text/plain; charset=utf-8\nIdempotency-Key: run-1/n\nX-One: settings\nX-Def: d\n"},
		{"http.delete", params{"url": "/x"}, "DELETE /x\nUser-Agent: tea/1.2.3\nX-One: settings\nX-Def: d\n"},
		{"http.request", params{"url": "/", "method": "options"}, "OPTIONS /\nUser-Agent: tea/1.2.3\nX-One: settings\nX-Def: d\n"},
		{"http.request", params{"url": "/"}, "GET /\nUser-Agent: tea/1.2.3\nX-One: settings\nX-Def: d\n"},
	} {
		test.params["url"] = server.URL + test.params["url"].(string)
		got := c.Must(test.action, test.params)
		if diff := cmp.Diff(test.want, got["text"]); diff != "" || got["body"] != got["text"] || got["status"] != int64(200) {
			t.Errorf("%s %v: status %v (-want +got):\n%s", test.action, test.params, got["status"], diff)
		}
		headers := got["headers"].(params)
		if headers["x-twice"] != "a, b" || headers["content-type"] != "text/plain" {
			t.Errorf("%s sends the headers %v", test.action, headers)
		}
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		io.WriteString(w, r.URL.Query().Get("body"))
	})
	c := open(t, nil)
	for _, test := range []struct {
		kind, body string
		want       any
		text       string
	}{
		{"application/json", `{"id":9007199254740993}`, params{"id": int64(9007199254740993)}, `{"id":9007199254740993}`},
		{"application/problem+json; charset=utf-8", "\ufeff[1]", list{int64(1)}, "\ufeff[1]"},
		{"application/json", `{broken`, `{broken`, `{broken`},
		{"text/html", `{"a":1}`, `{"a":1}`, `{"a":1}`},
		{"application/json", "", nil, ""},
		{"text/plain; charset=ISO-8859-1", "gr\xfcn", "grün", "grün"},
		{"application/json; charset=latin1", "[\"gr\xfcn\"]", list{"grün"}, `["grün"]`},
		{"text/plain; charset=iso-8859-1", "5 \x80 \x93a\x94 \xa7", "5 € “a” §", "5 € “a” §"},
		{"text/plain; charset=US-ASCII", "abc", "abc", "abc"},
		{"text/plain; charset=shift_jis", "abc", "abc", "abc"},
	} {
		address := server.URL + "?" + url.Values{"type": {test.kind}, "body": {test.body}}.Encode()
		got := c.Must("http.get", params{"url": address})
		if diff := cmp.Diff(list{test.want, test.text}, list{got["body"], got["text"]}); diff != "" {
			t.Errorf("%s %q (-want +got):\n%s", test.kind, test.body, diff)
		}
	}
}

// A body that is not text is not changed into text with replacement characters.
func TestBodiesThatAreNotTextAreBase64(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		if r.URL.Path == "/fail" {
			w.WriteHeader(http.StatusNotFound)
		}
		io.WriteString(w, r.URL.Query().Get("body"))
	})
	c := open(t, nil)
	for _, test := range []struct{ kind, body string }{
		{"image/png", "\x89PNG\r\n\x1a\n\x00"},
		{"application/octet-stream", "a\xffb"},
		{"text/plain", "gr\xfcn"},
		{"text/plain; charset=utf-8", "gr\xfcn"},
		{"application/json", "[\"gr\xfcn\"]"},
		{"text/plain; charset=shift_jis", "\x93\xfa\x96\x7b"},
		{"text/plain; charset=iso-8859-15", "5 \xa4"},
		{"text/plain; charset=utf-16le", "a\x00b\x00"},
		{"text/plain; charset=iso-2022-jp", "\x1b$BF|\x1b(B"},
	} {
		query := "?" + url.Values{"type": {test.kind}, "body": {test.body}}.Encode()
		got := c.Must("http.get", params{"url": server.URL + query})
		want := list{base64.StdEncoding.EncodeToString([]byte(test.body)), "", "base64"}
		if diff := cmp.Diff(want, list{got["body"], got["text"], got["encoding"]}); diff != "" {
			t.Errorf("%s %q (-want +got):\n%s", test.kind, test.body, diff)
		}
		err := c.Fails(tea.NotFound, "http.get", params{"url": server.URL + "/fail" + query})
		if text := fmt.Sprint(err.Message, err.Details); strings.Contains(text, "\ufffd") || !strings.Contains(text, "bytes that are not text") {
			t.Errorf("%s %q: the error is %s", test.kind, test.body, text)
		}
	}
}

func TestAnAddressWithoutSchemeSaysSo(t *testing.T) {
	t.Parallel()
	c := open(t, nil)
	for _, address := range []string{"127.0.0.1:1/", "localhost:80/x", "example.com/x", "//example.com"} {
		if e := c.Fails(tea.ValidationError, "http.get", params{"url": address}); !strings.Contains(e.Message, "must begin with http:// or https://") {
			t.Errorf("%s: %v", address, e)
		}
	}
}

func TestABodyIsNotSentUnderAnotherCharset(t *testing.T) {
	t.Parallel()
	server := serve(t, echo)
	c := open(t, nil)
	send := func(text, kind string) params {
		return params{"url": server.URL, "body": text, "headers": params{"content-type": kind}}
	}
	c.Fails(tea.ValidationError, "http.post", send("grün", "text/plain; charset=ISO-8859-1"))
	for _, sent := range []params{send("grun", "text/plain; charset=ISO-8859-1"), send("grün", "text/plain; charset=UTF-8"), send("grün", "text/plain")} {
		c.Must("http.post", sent)
	}
}

func TestStatusErrors(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		status := map[string]int{"/400": 400, "/401": 401, "/403": 403, "/404": 404, "/408": 408, "/409": 409, "/425": 425, "/429": 429, "/500": 500, "/503": 503, "/504": 504, "/204": 204, "/302": 302}[r.URL.Path]
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		if status != 204 {
			io.WriteString(w, `{"why":"`+strings.Repeat("x", 5000)+`"}`)
		}
	})
	c := open(t, nil)
	for path, want := range map[string]struct {
		kind       tea.ErrorType
		retryable  bool
		retryAfter time.Duration
	}{
		"/400": {tea.ValidationError, false, 0}, "/401": {tea.PermissionDenied, false, 0}, "/403": {tea.PermissionDenied, false, 0}, "/404": {tea.NotFound, false, 0},
		"/408": {tea.Timeout, true, 7 * time.Second}, "/409": {tea.ValidationError, false, 0}, "/425": {tea.ConnectionError, true, 7 * time.Second}, "/429": {tea.RateLimited, true, 7 * time.Second},
		"/500": {tea.ConnectionError, true, 7 * time.Second}, "/503": {tea.ConnectionError, true, 7 * time.Second}, "/504": {tea.Timeout, true, 7 * time.Second},
	} {
		e := c.Fails(want.kind, "http.get", params{"url": server.URL + path + "?token=secret"})
		if e.Retryable != want.retryable || e.RetryAfter != want.retryAfter {
			t.Errorf("%s: retryable %v after %v, want %v after %v", path, e.Retryable, e.RetryAfter, want.retryable, want.retryAfter)
		}
		if strings.Contains(e.Message, "secret") || !strings.Contains(e.Message, path+": status "+path[1:]) {
			t.Errorf("%s: message %q", path, e.Message)
		}
		body, _ := e.Details["body"].(string)
		if status, _ := e.Details["status"].(int); "/"+strconv.Itoa(status) != path || !strings.HasPrefix(body, `{"why":"xx`) || len(body) > 4200 {
			t.Errorf("%s: details have status %v and %d bytes of body", path, e.Details["status"], len(body))
		}
	}
	if got := c.Must("http.get", params{"url": server.URL + "/404", "expect_status": list{200, 404}}); got["status"] != int64(404) {
		t.Errorf("an expected 404 gives %v", got["status"])
	}
	c.Must("http.get", params{"url": server.URL + "/503", "expect_status": 503})
	c.Must("http.get", params{"url": server.URL + "/302", "follow_redirects": false})
	c.Fails(tea.ValidationError, "http.get", params{"url": server.URL + "/204", "expect_status": 200})
	if got := c.Must("http.get", params{"url": server.URL + "/204"}); got["body"] != nil || got["text"] != "" {
		t.Errorf("an empty answer gives %v", got)
	}
}

func TestRetryAfterDate(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusTooManyRequests)
	})
	e := open(t, nil).Fails(tea.RateLimited, "http.get", params{"url": server.URL})
	if e.RetryAfter < 50*time.Minute || e.RetryAfter > time.Hour {
		t.Errorf("retry after %v, want about an hour", e.RetryAfter)
	}
}

func TestAllowHosts(t *testing.T) {
	t.Parallel()
	server := serve(t, echo)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		allow any
		ok    bool
	}{
		{list{"127.0.0.1"}, true},
		{list{"127.0.0.1:" + target.Port()}, true},
		{list{"*"}, true},
		{list{"*:" + target.Port()}, true},
		{list{"example.com", "127.0.0.1"}, true},
		{list{"127.0.0.1:1"}, false},
		{list{"*.example.com"}, false},
		{list{"example.com"}, false},
		{list{}, false},
		{nil, false},
	} {
		c := open(t, params{"allow_hosts": test.allow})
		if test.ok {
			c.Must("http.get", params{"url": server.URL})
			continue
		}
		c.Fails(tea.PermissionDenied, "http.get", params{"url": server.URL})
	}
	c := open(t, params{"allow_hosts": list{"*.Example.com", "[::1]:80"}})
	for _, address := range []string{"http://example.com/", "http://badexample.com", "http://example.com.evil.org", "http://user@evil.org#.example.com", "http://[::1]:81"} {
		c.Fails(tea.PermissionDenied, "http.get", params{"url": address})
	}
	for _, bad := range []any{"http://a.b", "a*.com", "*a.com", "", "a/b"} {
		if _, err := actiontest.TryOpen(t, httpactions.Bundle("1"), params{"http": params{"allow_hosts": list{bad}}}); err == nil {
			t.Errorf("allow_hosts %q is taken", bad)
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	other := serve(t, echo)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/echo", http.StatusFound)
		case "/other":
			http.Redirect(w, r, other.URL+"/there", http.StatusTemporaryRedirect)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/file":
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		default:
			echo(w, r)
		}
	})
	c := open(t, params{"max_redirects": 3})
	headers := params{"Authorization": "Bearer x", "X-One": "key"}
	if got := c.Must("http.get", params{"url": server.URL + "/same", "headers": headers}); !strings.Contains(got["text"].(string), "Bearer x") {
		t.Errorf("a redirect on the same host loses its headers: %v", got["text"])
	}
	got := c.Must("http.post", params{"url": server.URL + "/other", "headers": headers, "body": "data"})
	if diff := cmp.Diff("POST /there\nUser-Agent: tea/1.2.3\nContent-Type: text/plain; charset=utf-8\ndata", got["text"]); diff != "" {
		t.Errorf("on another host (-want +got):\n%s", diff)
	}
	if got := c.Must("http.get", params{"url": server.URL + "/other", "follow_redirects": false}); got["status"] != int64(307) || got["headers"].(params)["location"] != other.URL+"/there" {
		t.Errorf("not followed gives %v", got)
	}
	if e := c.Fails(tea.ConnectionError, "http.get", params{"url": server.URL + "/loop"}); e.Retryable || !strings.Contains(e.Message, "more than 3 redirects") {
		t.Errorf("a loop gives %v", e)
	}
	c.Fails(tea.ValidationError, "http.get", params{"url": server.URL + "/file"})
	c = open(t, params{"allow_hosts": list{strings.TrimPrefix(server.URL, "http://")}})
	if e := c.Fails(tea.PermissionDenied, "http.get", params{"url": server.URL + "/other"}); !strings.Contains(e.Message, "redirect refused") {
		t.Errorf("got %v", e)
	}
}

func TestAnswersAreLimited(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	zipped := gzip.NewWriter(&bomb)
	zipped.Write(make([]byte, 10<<20))
	zipped.Close()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb.Bytes())
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		case "/exact":
			w.Write(make([]byte, 1000))
		case "/headers":
			w.Header().Set("X", strings.Repeat("x", 2<<20))
		}
	})
	c := open(t, params{"max_body_bytes": 1000})
	for _, path := range []string{"/bomb", "/endless"} {
		if e := c.Fails(tea.ResourceExhausted, "http.get", params{"url": server.URL + path}); !strings.Contains(e.Message, "exceeds 1000 bytes") {
			t.Errorf("%s gives %v", path, e)
		}
	}
	c.Fails(tea.ConnectionError, "http.get", params{"url": server.URL + "/headers"})
	c.Must("http.get", params{"url": server.URL + "/exact"})
}

func TestTimeoutAndCancel(t *testing.T) {
	t.Parallel()
	arrived, gone := make(chan struct{}, 2), make(chan struct{}, 2)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		arrived <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	c := open(t, nil)
	if e := c.Fails(tea.Timeout, "http.get", params{"url": server.URL, "timeout_seconds": 0.05}); !e.Retryable {
		t.Errorf("%v is not retryable", e)
	}
	<-arrived
	<-gone
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	_, err := c.Call(ctx, "http.get", params{"url": server.URL})
	if e := tea.AsError(err); e == nil || e.Type != tea.Canceled {
		t.Errorf("a canceled call gives %v", err)
	}
	<-gone // the server has seen it too
	c.Fails(tea.ValidationError, "http.get", params{"url": server.URL, "timeout_seconds": 0})
}

func TestConnectionErrors(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	cut := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			conn.Close()
		}
	})
	untrusted := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	c := open(t, nil)
	for address, retryable := range map[string]bool{closed.URL + "/?key=secret": true, cut.URL: true, untrusted.URL: false} {
		e := c.Fails(tea.ConnectionError, "http.get", params{"url": address})
		if e.Retryable != retryable || strings.Contains(e.Message, "secret") || e.Source == "" {
			t.Errorf("%s gives %v, retryable %v", address, e, e.Retryable)
		}
	}
}

// Only a request that certainly did not reach a server is marked so.
func TestErrorsSayWhetherTheRequestWasSent(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/done": // processed, and the page to show does not answer
			http.Redirect(w, r, closed.URL, http.StatusSeeOther)
		case "/gone":
			http.Redirect(w, r, "/missing", http.StatusSeeOther)
		default:
			http.NotFound(w, r)
		}
	})
	c := open(t, nil)
	withPassword := strings.Replace(closed.URL, "://", "://user:password@", 1)
	for address, want := range map[string]any{closed.URL: true, withPassword: true, server.URL + "/done": nil, server.URL + "/gone": false, server.URL + "/missing": nil} {
		_, err := c.Call(t.Context(), "http.post", params{"url": address})
		e := tea.AsError(err)
		if e == nil {
			t.Fatalf("%s succeeds", address)
		}
		if got := e.Details["not_sent"]; got != want {
			t.Errorf("%s: not_sent is %v, want %v: %v", address, got, want, e)
		}
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	connections := make(chan net.Conn, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections <- conn
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := open(t, nil)
	for range 5 {
		c.Must("http.get", params{"url": server.URL})
	}
	if len(connections) != 1 {
		t.Errorf("5 calls opened %d connections, want 1", len(connections))
	}
}

func TestBadParameters(t *testing.T) {
	t.Parallel()
	c := open(t, nil)
	for _, test := range []struct {
		params params
		want   string
	}{
		{params{}, `needs the parameter "url"`},
		{params{"url": "ftp://a/b"}, "must begin with http:// or https://"},
		{params{"url": "/a"}, "must begin with http:// or https://"},
		{params{"url": "http://"}, "has no host"},
		{params{"url": "http://a b"}, "url"},
		{params{"url": "http://a", "json": 1, "body": "x"}, "cannot be combined"},
		{params{"url": "http://a", "headers": params{"X": params{}}}, "headers.X: expected text"},
		{params{"url": "http://a", "query": params{"X": list{list{}}}}, "query.X: expected text"},
		{params{"url": "http://a", "headers": params{"X y": "1"}}, "one word"},
		{params{"url": "http://a", "headers": params{"X": "1\r\nY: 2"}}, "one line"},
		{params{"url": "http://a", "expect_status": "ok"}, "expect_status"},
		{params{"url": "http://a", "timout": 1}, `has no parameter "timout"`},
		{params{"url": "http://a", "method": "G T"}, `parameter "method": must match`},
	} {
		action := "http.get"
		if test.params["method"] != nil {
			action = "http.request"
		}
		_, err := c.Call(t.Context(), action, test.params)
		if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError || !strings.Contains(e.Message, test.want) {
			t.Errorf("%v gives %v, want %q in it", test.params, err, test.want)
		}
	}
	for _, bad := range []params{{"max_body_bytes": 0}, {"timeout_seconds": -1}, {"max_redirects": -1}, {"allow_host": list{}}} {
		if _, err := actiontest.TryOpen(t, httpactions.Bundle("1"), params{"http": bad}); err == nil {
			t.Errorf("settings.http %v are taken", bad)
		}
	}
}
