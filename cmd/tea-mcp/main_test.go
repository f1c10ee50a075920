package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
	"github.com/the-edge-agent/tea/test/teaproc"
)

// asTea makes the test binary tea-mcp.
const asTea = "TEA_MCP_TEST_MAIN"

func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "tea-plugin-pid":
		servePlugin()
		return
	case os.Getenv(asTea) != "":
		main()
		return
	}
	os.Exit(m.Run())
}

// versions are the versions of the protocol that tests run with: the last one
// with a handshake, and the one without.
var versions = []string{"2025-11-25", "2026-07-28"}

// project is a directory with workflows, and a home for the runs.
type project struct {
	t    testing.TB
	dir  string
	home string
}

func newProject(t testing.TB, files map[string]string) *project {
	t.Helper()
	p := &project{t, t.TempDir(), t.TempDir()}
	for name, text := range files {
		p.write(name, text)
	}
	return p
}

// write replaces a file atomically.
func (p *project) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		p.t.Fatal(err)
	}
}

// command returns a call of tea-mcp whose stderr goes to log.
func (p *project) command(log *logs, args ...string) *exec.Cmd {
	p.t.Helper()
	peertest.Long(p.t, "it starts a server")
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), self, args...)
	cmd.Dir = p.home
	cmd.Env = append(os.Environ(), asTea+"=1", "HOME="+p.home, "XDG_STATE_HOME="+p.home, "XDG_CONFIG_HOME="+p.home, "XDG_DATA_HOME="+p.home, "XDG_CACHE_HOME="+p.home, "TEA_PLUGINS=")
	cmd.Stderr = log
	cmd.WaitDelay = 10 * time.Second // a child can keep stderr open
	return cmd
}

// logs is what a program prints to stderr.
type logs struct{ *teaproc.Log }

func newLogs() *logs { return &logs{teaproc.NewLog()} }

func (l *logs) await(t testing.TB, text string) {
	t.Helper()
	l.Await(t, text)
}

// client is a client of a server on stdin and stdout.
type client struct {
	*mcp.ClientSession
	t   testing.TB
	log *logs
	cmd *exec.Cmd
}

// start starts a server for the project and connects to it.
func (p *project) start(o *mcp.ClientOptions, version string, args ...string) *client {
	p.t.Helper()
	log := newLogs()
	cmd := p.command(log, append([]string{"mcp", p.dir}, args...)...)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).
		Connect(p.t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		p.t.Fatalf("connect: %v\n%s", err, log)
	}
	p.t.Cleanup(func() { _ = session.Close() })
	return &client{session, p.t, log, cmd}
}

// outcome is the structured result of a call.
type outcome struct {
	RunID     string           `json:"run_id"`
	Status    string           `json:"status"`
	State     map[string]any   `json:"state"`
	Pending   []map[string]any `json:"pending"`
	Error     string           `json:"error"`
	ErrorType string           `json:"error_type"`
	Note      string           `json:"note"`
	// text is the whole result as text.
	text    string
	isError bool
}

// call calls a tool and returns its result.
func (c *client) call(name string, args map[string]any) outcome {
	c.t.Helper()
	res, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		c.t.Fatalf("call %s: %v\n%s", name, err, c.log)
	}
	return readOutcome(c.t, res)
}

func readOutcome(t testing.TB, res *mcp.CallToolResult) outcome {
	t.Helper()
	var out outcome
	if res.StructuredContent != nil {
		raw, err := json.Marshal(res.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatal(err)
		}
	}
	for _, content := range res.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			out.text += text.Text
		}
	}
	out.isError = res.IsError
	return out
}

// read reads a resource as JSON.
func (c *client) read(uri string) map[string]any {
	c.t.Helper()
	res, err := c.ReadResource(c.t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		c.t.Fatalf("read %s: %v\n%s", uri, err, c.log)
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(res.Contents[0].Text), &v); err != nil {
		c.t.Fatal(err)
	}
	return v
}
