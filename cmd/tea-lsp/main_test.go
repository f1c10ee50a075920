package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// asTea makes the test binary tea-lsp.
const asTea = "TEA_LSP_AS_TEA"

func TestMain(m *testing.M) {
	if os.Getenv(asTea) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// client is an editor that talks to a process of tea-lsp.
type client struct {
	t       *testing.T
	dir     string
	home    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	replies chan map[string]any
	// published receives the findings as they come.
	published chan publish
	id        int
}

type publish struct {
	URI         string
	Version     int
	Diagnostics []finding
}

type finding struct {
	Range           spanOf
	Severity        int
	Code            string
	CodeDescription struct{ Href string }
	Source, Message string
}

type spanOf struct{ Start, End place }

type place struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

func (s spanOf) String() string {
	return fmt.Sprintf("%d:%d-%d:%d", s.Start.Line, s.Start.Character, s.End.Line, s.End.Character)
}

// newClient starts tea-lsp with files in its directory.
func newClient(t *testing.T, files map[string]string, args ...string) *client {
	t.Helper()
	c := &client{t: t, dir: t.TempDir(), home: t.TempDir(), replies: make(chan map[string]any, 16), published: make(chan publish, 1024)}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.cmd = exec.CommandContext(t.Context(), os.Args[0], append([]string{"lsp"}, args...)...)
	c.cmd.Dir = c.dir
	c.cmd.Env = append(os.Environ(), asTea+"=1", "HOME="+c.home)
	c.cmd.Stderr = t.Output()
	c.cmd.WaitDelay = 10 * time.Second
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.receive(bufio.NewReader(out))
	t.Cleanup(func() { _ = c.in.Close() })
	return c
}

// initialized is a client after the handshake.
func initialized(t *testing.T, files map[string]string, args ...string) *client {
	t.Helper()
	c := newClient(t, files, args...)
	c.call("initialize", map[string]any{"processId": nil, "rootUri": c.uri(""), "capabilities": map[string]any{}})
	c.notify("initialized", map[string]any{})
	return c
}

func (c *client) receive(out *bufio.Reader) {
	defer close(c.replies)
	defer close(c.published)
	for {
		header, err := textproto.NewReader(out).ReadMIMEHeader()
		if err != nil {
			return
		}
		n, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			c.t.Errorf("header %v", header)
			return
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(out, body); err != nil {
			return
		}
		var m map[string]any
		if err := json.Unmarshal(body, &m); err != nil || m["jsonrpc"] != "2.0" {
			c.t.Errorf("%s: %v", body, err)
			return
		}
		switch m["method"] {
		case "textDocument/publishDiagnostics":
			var p publish
			convert(c.t, m["params"], &p)
			c.published <- p
		case nil:
			c.replies <- m
		}
	}
}

func convert(t *testing.T, from, to any) {
	t.Helper()
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Error(err)
	}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, "Content-Length: %d\r\n\r\n%s", len(text), text); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) notify(method string, params any) {
	c.t.Helper()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(string(text))
}

// request returns the response to a request.
func (c *client) request(method string, params any) map[string]any {
	c.t.Helper()
	c.id++
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(string(text))
	m := c.reply()
	if m["id"] != float64(c.id) {
		c.t.Fatalf("answer %v to %d", m, c.id)
	}
	return m
}

// call returns the result of a request.
func (c *client) call(method string, params any) any {
	c.t.Helper()
	m := c.request(method, params)
	if m["error"] != nil {
		c.t.Fatalf("%s: %v", method, m["error"])
	}
	return m["result"]
}

func (c *client) reply() map[string]any {
	c.t.Helper()
	select {
	case m, ok := <-c.replies:
		if !ok {
			c.t.Fatal("the server has ended")
		}
		return m
	case <-time.After(30 * time.Second):
		c.t.Fatal("no answer")
	}
	return nil
}

func (c *client) uri(name string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(c.dir, name))}).String()
}

func (c *client) open(name, text string) {
	c.t.Helper()
	c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": c.uri(name), "languageId": "yaml", "version": 1, "text": text}})
}

func (c *client) change(name string, version int, changes ...map[string]any) {
	c.t.Helper()
	c.notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": c.uri(name), "version": version}, "contentChanges": changes})
}

// whole is the change of a whole text.
func whole(text string) map[string]any { return map[string]any{"text": text} }

// part is the change of a range.
func part(startLine, start, endLine, end int, text string) map[string]any {
	return map[string]any{"range": map[string]any{"start": place{startLine, start}, "end": place{endLine, end}}, "text": text}
}

// findings waits for the findings about a version of a document.
func (c *client) findings(name string, version int) []finding {
	c.t.Helper()
	uri := c.uri(name)
	for limit := time.After(30 * time.Second); ; {
		select {
		case p, ok := <-c.published:
			if !ok {
				c.t.Fatal("the server has ended")
			}
			if p.URI == uri && p.Version == version {
				return p.Diagnostics
			}
		case <-limit:
			c.t.Fatalf("no findings about version %d of %s", version, name)
		}
	}
}

// short returns findings as RANGE CODE MESSAGE.
func short(list []finding) string {
	var lines []string
	for _, f := range list {
		message, _, _ := strings.Cut(f.Message, "\n")
		lines = append(lines, fmt.Sprintf("%s %s %s", f.Range, f.Code, message))
	}
	return strings.Join(lines, "\n")
}
