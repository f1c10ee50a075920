package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/mcp"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// npmServer returns the settings of a server from npm.
func npmServer(t *testing.T, name string, args ...any) map[string]any {
	t.Helper()
	return map[string]any{"command": filepath.Join(peertest.Dir(t, "../..", "mcp-peers"), "node_modules/.bin", "mcp-server-"+name), "args": args}
}

func TestPeerFilesystem(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	settings := with(npmServer(t, "filesystem", root))
	accept(t, settings)
	c := open(t, settings)
	path := filepath.Join(root, "notes.txt")
	c.must(t, "mcp.s_write_file", map[string]any{"path": path, "content": "milk, eggs, pão"})
	if got := c.must(t, "mcp.s_read_text_file", map[string]any{"path": path})["text"]; got != "milk, eggs, pão" {
		t.Errorf("read: %v", got)
	}
	_, err = c.call(t.Context(), "mcp.s_read_text_file", map[string]any{"path": "/etc/passwd"})
	refused(t, err, mcp.ToolFailed, "outside allowed directories")
	_, err = c.call(t.Context(), "mcp.s_read_text_file", nil)
	refused(t, err, tea.ValidationError, "path")
	for _, tool := range c.must(t, "mcp.list_tools", nil)["tools"].([]any) {
		if tool := tool.(map[string]any); tool["unchecked"] != nil || tool["refused"] != nil {
			t.Errorf("%v", tool)
		}
	}
}

func TestPeerMemory(t *testing.T) {
	t.Parallel()
	c := open(t, with(npmServer(t, "memory"), "env", map[string]any{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}))
	c.must(t, "mcp.s_create_entities", map[string]any{"entities": []any{map[string]any{"name": "Ada", "entityType": "person", "observations": []any{"wrote the first program"}}}})
	got := c.must(t, "mcp.s_search_nodes", map[string]any{"query": "program"})
	if text := fmt.Sprint(got); !strings.Contains(text, "Ada") || !strings.Contains(text, "wrote the first program") {
		t.Errorf("search: %v", got)
	}
}

func TestPeerEverything(t *testing.T) {
	t.Parallel()
	c := open(t, with(npmServer(t, "everything")))
	listed := actionsOf(t, c.must(t, "mcp.list_tools", nil))
	if len(listed) < 8 {
		t.Fatalf("tools: %v", listed)
	}
	if got := c.must(t, "mcp.s_echo", map[string]any{"message": "olá"})["text"]; got != "Echo: olá" {
		t.Errorf("echo: %v", got)
	}
	image := c.must(t, "mcp.s_get_tiny_image", nil)["content"].([]any)[0].(map[string]any)
	if image["type"] != "image" || image["mime_type"] != "image/png" || image["bytes"].(int64) < 100 {
		t.Errorf("image: %v", image["type"])
	}
	r := c.must(t, "mcp.s_trigger_long_running_operation", map[string]any{"duration": 0.2, "steps": 2})
	if !strings.Contains(fmt.Sprint(r["text"]), "completed") {
		t.Errorf("long running operation: %v", r)
	}
	resources, _ := c.must(t, "mcp.read_resource", map[string]any{"server": "s"})["resources"].([]any)
	if len(resources) == 0 {
		t.Fatal("no resources")
	}
	if text := c.must(t, "mcp.read_resource", map[string]any{"server": "s", "uri": resources[0].(map[string]any)["uri"]}); text["text"] == "" && text["contents"] == nil {
		t.Errorf("resource: %v", text)
	}
	prompts, _ := c.must(t, "mcp.get_prompt", map[string]any{"server": "s"})["prompts"].([]any)
	if len(prompts) == 0 {
		t.Fatal("no prompts")
	}
}

// The server everything offers these only to clients with the capabilities.
func TestPeerEverythingAsks(t *testing.T) {
	t.Parallel()
	c := open(t, with(npmServer(t, "everything"), "sampling", map[string]any{"enabled": true}))
	c.host.Actions = map[string]func(context.Context, any) (any, error){
		"human.ask": func(context.Context, any) (any, error) { return map[string]any{"success": true, "answer": nil}, nil },
		"llm.call": func(context.Context, any) (any, error) {
			return map[string]any{"content": "hello from the model", "model": "tiny", "finish_reason": "stop"}, nil
		},
	}
	if got := c.must(t, "mcp.s_trigger_sampling_request", map[string]any{"prompt": "hi", "maxTokens": 20})["text"]; !strings.Contains(fmt.Sprint(got), "hello from the model") {
		t.Errorf("sampling: %v", got)
	}
	if got := c.must(t, "mcp.s_trigger_elicitation_request", nil)["text"]; !strings.Contains(fmt.Sprint(got), "declined") {
		t.Errorf("elicitation: %v", got)
	}
}

// python returns the settings of the server on the SDK for Python.
func python(t *testing.T, transport string) map[string]any {
	t.Helper()
	path := filepath.Join(peertest.Dir(t, "../..", "mcp-peers"), "python/bin/python")
	script, err := filepath.Abs("testdata/python_server.py")
	if err != nil {
		t.Fatal(err)
	}
	if transport == "stdio" {
		return map[string]any{"command": path, "args": []any{script}}
	}
	cmd := exec.CommandContext(t.Context(), path, script, "http")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"url": "http://127.0.0.1:" + strings.TrimSpace(port) + "/mcp"}
}

// What differs is in the table of docs/guide/mcp.md.
func TestPeerPython(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"stdio", "http"} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(transport+" "+version, func(t *testing.T) {
				t.Parallel()
				testPython(t, with(python(t, transport), "protocol_version", version), version)
			})
		}
	}
}

func testPython(t *testing.T, settings map[string]any, version string) {
	t.Helper()
	accept(t, settings)
	c := open(t, settings)
	if got := c.must(t, "mcp.s_version", nil)["text"]; got != version {
		t.Errorf("version: %v, want %s", got, version)
	}
	if got := c.must(t, "mcp.s_add", map[string]any{"a": 41})["data"]; !cmp.Equal(got, map[string]any{"result": int64(42)}) {
		t.Errorf("add: %v", got)
	}
	_, err := c.call(t.Context(), "mcp.s_fail", nil)
	refused(t, err, mcp.ToolFailed, "the answer is not 42")
	// The SDK keeps the text of other exceptions to itself.
	if _, err = c.call(t.Context(), "mcp.s_crash", nil); errorType(err) != mcp.ToolFailed || strings.Contains(err.Error(), "disk") {
		t.Errorf("crash: %v", err)
	}
	_, err = c.call(t.Context(), "mcp.call", map[string]any{"server": "s", "tool": "nothing"})
	refused(t, err, tea.NotFound, `unknown tool "nothing"`)
	_, err = c.call(t.Context(), "mcp.read_resource", map[string]any{"server": "s", "uri": "nothing://x"})
	refused(t, err, tea.NotFound, `unknown resource "nothing://x"`)
	if got := c.must(t, "mcp.s_work", map[string]any{"steps": 3})["text"]; got != "done" {
		t.Errorf("work: %v", got)
	}
	if got := c.must(t, "mcp.s_report", nil)["text"]; got != "reported" || !strings.Contains(c.logged(), "the valve sticks") {
		t.Errorf("report: %v, log %q", got, c.logged())
	}
	c.host.Actions = map[string]func(context.Context, any) (any, error){"human.ask": func(context.Context, any) (any, error) {
		return map[string]any{"success": true, "answer": map[string]any{"branch": "main"}}, nil
	}}
	if got := c.must(t, "mcp.s_choose", nil)["text"]; got != "accept main" {
		t.Errorf("choose: %v", got)
	}
	if got, err := c.call(t.Context(), "mcp.s_elicit", nil); version == "2026-07-28" {
		refused(t, err, tea.InternalError, "elicitation/create")
	} else if err != nil || got["text"] != "accept main" {
		t.Errorf("elicit: %v, %v", got, err)
	}
	if got := c.must(t, "mcp.read_resource", map[string]any{"server": "s", "uri": "greeting://Ada"})["text"]; got != "Hello Ada" {
		t.Errorf("resource: %v", got)
	}
	prompt := c.must(t, "mcp.get_prompt", map[string]any{"server": "s", "prompt": "review", "arguments": map[string]any{"code": "x = 1"}})
	if !strings.Contains(fmt.Sprint(prompt["messages"]), "Review this code: x = 1") {
		t.Errorf("prompt: %v", prompt)
	}
}
