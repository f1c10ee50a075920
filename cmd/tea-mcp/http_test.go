package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const token = "0123456789abcdef0123456789abcdef"

// web is a server for HTTP.
type web struct {
	t   testing.TB
	url string
	cmd *exec.Cmd
	log *logs
	// done gets the error of the process.
	done chan error
}

// tokenFile returns a file with the token.
func (p *project) tokenFile() string {
	p.t.Helper()
	file := filepath.Join(p.home, "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return file
}

// serve starts a server for HTTP.
func (p *project) serve(args ...string) *web {
	p.t.Helper()
	w := &web{t: p.t, log: newLogs(), done: make(chan error, 1)}
	w.cmd = p.command(w.log, append([]string{"mcp", p.dir, "--http", "127.0.0.1:0"}, args...)...)
	if err := w.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() { w.done <- w.cmd.Wait() }()
	p.t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	w.log.await(p.t, "serving MCP at http://")
	w.log.await(p.t, "/mcp\n")
	w.url = regexp.MustCompile(`http://\S+`).FindString(w.log.String())
	return w
}

// connect returns a client with a token.
func (w *web) connect(o *mcp.ClientOptions, version, token string) (*client, error) {
	transport := &mcp.StreamableClientTransport{Endpoint: w.url, HTTPClient: &http.Client{Transport: bearer(token)}}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(w.t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	w.t.Cleanup(func() { _ = session.Close() })
	return &client{session, w.t, w.log, w.cmd}, nil
}

// bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// awaitChange waits until the client is notified of a new tool. The stream that
// it opens for notifications can begin after the first ones, so more files
// follow.
func (p *project) awaitChange(changed <-chan struct{}) {
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-changed:
			return
		case <-ticker.C:
			p.write(fmt.Sprintf("further%d.yaml", n), "nodes: [{name: n}]")
		}
	}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, map[string]string{"publish.yaml": publish, "slow.yaml": slow})
			w := p.serve("--token-file", p.tokenFile())
			var asked []string
			o := answering(&asked, accept(map[string]any{"answer": "yes"}))
			changed := make(chan struct{}, 10)
			o.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }
			progress := make(chan string, 100)
			o.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Message }
			c, err := w.connect(o, version, token)
			if err != nil {
				t.Fatalf("connect: %v\n%s", err, w.log)
			}
			if out := c.call("publish", nil); out.State["sent"] != true || len(asked) != 1 {
				t.Errorf("result: %+v, asked %q", out, asked)
			}
			p.write("greet.yaml", greet)
			p.awaitChange(changed)
			if names := c.toolNames(); !slices.Contains(names, "greet") {
				t.Errorf("tools: %v", names)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := c.begin(ctx, progress)
			cancel()
			<-ended
			w.log.await(t, "of slow stopped; resume it with `")
			ended = c.begin(t.Context(), progress)
			if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Skip(err)
			}
			<-ended
			if err := <-w.done; err != nil {
				t.Errorf("exit: %v\n%s", err, w.log)
			}
			w.log.await(t, "of slow stopped; resume it with `")
		})
	}
}

// post sends a message and returns the status.
func (w *web) post(body string, header map[string]string) (status int, session string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	if host := header["Host"]; host != "" {
		req.Host = host
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode, res.Header.Get("Mcp-Session-Id")
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// list is a request of a version without a session.
func list(version string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientCapabilities":{}}}}`
}

func TestRequestsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	w := p.serve("--token-file", p.tokenFile())
	authorized := func(header map[string]string) map[string]string {
		header["Authorization"] = "Bearer " + token
		return header
	}
	for _, c := range []struct {
		name   string
		header map[string]string
		body   string
		want   int
	}{
		{"ours", authorized(map[string]string{}), initialize, http.StatusOK},
		{"our page", authorized(map[string]string{"Origin": strings.TrimSuffix(w.url, "/mcp")}), initialize, http.StatusOK},
		{"localhost", authorized(map[string]string{"Host": "localhost:1"}), initialize, http.StatusOK},
		{"no token", nil, initialize, http.StatusUnauthorized},
		{"wrong token", map[string]string{"Authorization": "Bearer " + token + "0"}, initialize, http.StatusUnauthorized},
		{"other scheme", map[string]string{"Authorization": "Basic " + token}, initialize, http.StatusUnauthorized},
		{"rebound name", authorized(map[string]string{"Host": "evil.example"}), initialize, http.StatusForbidden},
		{"name like ours", authorized(map[string]string{"Host": "localhost.evil.example:80"}), initialize, http.StatusForbidden},
		{"page of another origin", authorized(map[string]string{"Origin": "https://evil.example"}), initialize, http.StatusForbidden},
		{"page without an origin", authorized(map[string]string{"Origin": "null"}), initialize, http.StatusForbidden},
		{"cross-site", authorized(map[string]string{"Sec-Fetch-Site": "cross-site"}), initialize, http.StatusForbidden},
		{"too large", authorized(map[string]string{}), `{"a":"` + strings.Repeat("x", 4<<20) + `"}`, http.StatusRequestEntityTooLarge},
		{"header of the version", authorized(map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}), list("2026-07-28"), http.StatusOK},
		{"header that contradicts", authorized(map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}), list("2026-07-28"), http.StatusBadRequest},
		{"unknown version", authorized(map[string]string{"Mcp-Protocol-Version": "2027-01-01", "Mcp-Method": "tools/list"}), list("2027-01-01"), http.StatusBadRequest},
		{"unknown session", authorized(map[string]string{"Mcp-Session-Id": "guess"}), initialize, http.StatusNotFound},
	} {
		if got, _ := w.post(c.body, c.header); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
}

func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	w := newProject(t, map[string]string{"greet.yaml": greet}).serve()
	var last string
	for n := range 64 {
		status, session := w.post(initialize, nil)
		if status != http.StatusOK {
			t.Fatalf("session %d: status %d", n, status)
		}
		last = session
	}
	if status, _ := w.post(initialize, nil); status != http.StatusServiceUnavailable {
		t.Errorf("session 65: status %d", status)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, w.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", last)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if status, _ := w.post(initialize, nil); status != http.StatusOK {
		t.Errorf("after one session ended: status %d", status)
	}
}

func TestFlagsThatDoNotFit(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	p.tokenFile()
	for name, text := range map[string]string{"short": "secret", "two words": token + " " + token} {
		if err := os.WriteFile(filepath.Join(p.home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open := filepath.Join(p.home, "open")
	if err := errors.Join(os.WriteFile(open, []byte(token), 0o600), os.Chmod(open, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"mcp"}, `expected "<dir>"`},
		{[]string{"mcp", "nowhere"}, "cannot read"},
		{[]string{"mcp", filepath.Join(p.dir, "greet.yaml")}, "is a file; name the directory"},
		{[]string{"mcp", p.dir, "--http", "0.0.0.0:0"}, "pass --token-file FILE"},
		{[]string{"mcp", p.dir, "--http", ":0"}, "pass --token-file FILE"},
		{[]string{"mcp", p.dir, "--http", "localhost"}, "missing port"},
		{[]string{"mcp", p.dir, "--token-file", "token"}, "--token-file is for --http"},
		{[]string{"mcp", p.dir, "--http", ":0", "--token-file", "short"}, "at least 16 characters"},
		{[]string{"mcp", p.dir, "--http", ":0", "--token-file", "two words"}, "one word"},
		{[]string{"mcp", p.dir, "--http", ":0", "--token-file", "open"}, "can be read by every user"},
		{[]string{"mcp", p.dir, "--durability", "off"}, "durability off"},
		{[]string{"mcp", p.dir, "--secrets", "-"}, "--secrets - reads stdin"},
	} {
		log := newLogs()
		err := p.command(log, c.args...).Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(log.String(), c.want) {
			t.Errorf("%s: %v, stderr %s; want %q", strings.Join(c.args, " "), err, log, c.want)
		}
	}
}

func TestConcurrentCallsAreBounded(t *testing.T) {
	t.Parallel()
	c, progress := newProject(t, map[string]string{"slow.yaml": slow}).startSlow("2025-11-25")
	ctx, cancel := context.WithCancel(t.Context())
	var ended []<-chan error
	for range 64 {
		ended = append(ended, c.begin(ctx, progress))
	}
	if out := c.call("slow", map[string]any{"seconds": 0}); !out.isError || !strings.Contains(out.text, fmt.Sprintf("too many calls are running (limit %d)", len(ended))) {
		t.Errorf("call 65: %+v", out)
	}
	cancel()
	for _, e := range ended {
		<-e
	}
}

// breaking breaks the first stream that has a text.
type breaking struct {
	text   string
	broken *atomic.Bool
}

func (b breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		res.Body = &brokenBody{res.Body, b}
	}
	return res, err
}

type brokenBody struct {
	io.ReadCloser
	breaking
}

func (b *brokenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if bytes.Contains(p[:n], []byte(b.text)) && b.broken.CompareAndSwap(false, true) {
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

func TestResultSurvivesABrokenConnection(t *testing.T) {
	t.Parallel()
	w := newProject(t, map[string]string{"slow.yaml": slow}).serve()
	var broken atomic.Bool
	transport := &mcp.StreamableClientTransport{Endpoint: w.url, HTTPClient: &http.Client{Transport: breaking{began, &broken}}}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	params := &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"seconds": 0.1}}
	params.SetProgressToken("slow")
	res, err := session.CallTool(t.Context(), params)
	if err != nil {
		t.Fatalf("%v\n%s", err, w.log)
	}
	if out := readOutcome(t, res); out.State["finished"] != true || !broken.Load() {
		t.Errorf("broken %t, result: %+v", broken.Load(), out)
	}
}
