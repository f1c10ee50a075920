package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/mcp"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// client is an opened bundle, for several calls with the same servers.
type client struct {
	*tea.Instance
	host *teatest.Host
}

func rawSettings(t testing.TB, settings map[string]any) tea.Settings {
	t.Helper()
	given := tea.Settings{}
	for key, v := range settings {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		given[key] = raw
	}
	return given
}

func open(t *testing.T, settings map[string]any) *client {
	t.Helper()
	bundle := mcp.Bundle()
	instance, err := bundle.NewInstance(t.Context(), rawSettings(t, settings))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := instance.Close(); err != nil {
			t.Error(err)
		}
	})
	return &client{instance, &teatest.Host{}}
}

// call calls an action; the result is nil after an error.
func (c *client) call(ctx context.Context, action string, params any) (map[string]any, error) {
	if params == nil {
		params = map[string]any{}
	}
	resp, err := c.Invoke(ctx, &tea.Request{Action: action, Params: tea.ValuePayload(params), Host: c.host, Call: tea.Call{Attempt: 1}})
	if err != nil {
		return nil, err
	}
	var result map[string]any
	return result, resp.Result.Decode(&result)
}

// must is call without an error.
func (c *client) must(t *testing.T, action string, params any) map[string]any {
	t.Helper()
	result, err := c.call(t.Context(), action, params)
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	return result
}

// refused requires an error of a type whose message contains all parts.
func refused(t *testing.T, err error, want tea.ErrorType, parts ...string) {
	t.Helper()
	if errorType(err) != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
}

// logged returns the warnings of the calls.
func (c *client) logged() string {
	var lines []string
	for _, l := range c.host.Recorded().Logs {
		if l.Level >= slog.LevelWarn {
			lines = append(lines, l.Message)
		}
	}
	return strings.Join(lines, "\n")
}

func TestTools(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("good")))
	if got := c.must(t, "mcp.s_add", map[string]any{"a": 2, "b": 40})["data"]; !cmp.Equal(got, map[string]any{"sum": int64(42)}) {
		t.Errorf("add: %v", got)
	}
	if got := c.must(t, "mcp.call", map[string]any{"server": "s", "tool": "echo", "arguments": map[string]any{"x": "ação", "n": json.Number("9007199254740993")}})["text"]; got != `{"n":9007199254740992,"x":"ação"}` && got != `{"n":9007199254740993,"x":"ação"}` {
		t.Errorf("echo: %v", got)
	}
	media := c.must(t, "mcp.s_media", nil)
	want := map[string]any{"success": true, "text": "first\nsecond", "content": []any{
		map[string]any{"type": "image", "mime_type": "image/png", "data": "/wAB", "bytes": int64(3)},
		map[string]any{"type": "resource_link", "uri": "file:///x", "name": "x"},
		map[string]any{"type": "resource", "uri": "mem://y", "mime_type": "text/plain", "text": "inside"},
	}}
	if diff := cmp.Diff(want, media); diff != "" {
		t.Errorf("media (-want +got):\n%s", diff)
	}
	_, err := c.call(t.Context(), "mcp.s_fail", nil)
	refused(t, err, mcp.ToolFailed, "the disk is on fire", "fail")
	_, err = c.call(t.Context(), "mcp.s_add", map[string]any{"a": "two"})
	refused(t, err, tea.ValidationError, "a", "integer")
	_, err = c.call(t.Context(), "mcp.s_ad", nil)
	refused(t, err, tea.NotFound, "mcp.s_ad", `did you mean "mcp.s_add"`)
	_, err = c.call(t.Context(), "mcp.call", map[string]any{"server": "t", "tool": "add"})
	refused(t, err, tea.NotFound, `unknown MCP server "t"`, "settings.mcp.servers has s")
	_, err = c.call(t.Context(), "mcp.call", map[string]any{"server": "s", "tool": "ad"})
	refused(t, err, tea.NotFound, `unknown tool "ad"`, "mcp.list_tools lists")
}

func TestResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("good")))
	read := c.must(t, "mcp.read_resource", map[string]any{"server": "s", "uri": "mem://notes"})
	if read["text"] != "milk and eggs" {
		t.Errorf("read: %v", read)
	}
	listed := c.must(t, "mcp.read_resource", map[string]any{"server": "s"})
	if resources, _ := listed["resources"].([]any); len(resources) != 1 {
		t.Errorf("listed: %v", listed)
	}
	_, err := c.call(t.Context(), "mcp.read_resource", map[string]any{"server": "s", "uri": "mem://none"})
	refused(t, err, tea.NotFound, "mem://none")
	prompt := c.must(t, "mcp.get_prompt", map[string]any{"server": "s", "prompt": "greet", "arguments": map[string]any{"name": "Ada"}})
	if diff := cmp.Diff([]any{map[string]any{"role": "user", "content": "Greet Ada"}}, prompt["messages"]); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	prompts, _ := c.must(t, "mcp.get_prompt", map[string]any{"server": "s"})["prompts"].([]any)
	if len(prompts) != 1 || !strings.Contains(fmt.Sprint(prompts), "greet") {
		t.Errorf("prompts: %v", prompts)
	}
}

func TestResultsAreBounded(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("good"), "max_result_bytes", 1001))
	r := c.must(t, "mcp.s_large", nil)
	text, _ := r["text"].(string)
	if !strings.Contains(text, "[cut off: ") || len(text) > 1100 {
		t.Errorf("%d bytes of text end with %q", len(text), text[max(0, len(text)-60):])
	}
	if r["truncated"] != "an image was left out; the text was cut off" {
		t.Errorf("truncated: %v", r["truncated"])
	}
}

func TestProgressAndLogs(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("good")))
	file := filepath.Join(t.TempDir(), "seen")
	ended := make(chan error)
	go func() {
		_, err := c.call(t.Context(), "mcp.s_progress", map[string]any{"file": file})
		ended <- err
	}()
	for len(c.host.Recorded().Progress) < 3 {
		select {
		case err := <-ended:
			t.Fatalf("the call ended: %v", err)
		default:
			runtime.Gosched()
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	rec := c.host.Recorded()
	want := []teatest.Progress{{Fraction: 0.25, Message: "step 1"}, {Fraction: 0.5, Message: "step 2"}, {Fraction: 0.75, Message: "step 3"}}
	if diff := cmp.Diff(want, rec.Progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestCleanEnvironment(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("good"), "env", map[string]any{"API_KEY": "k1"}))
	env, _ := c.must(t, "mcp.s_get_env", nil)["text"].(string)
	if strings.Contains(env, "MCP_TEST_SECRET") || !strings.Contains(env, "API_KEY=k1") || !strings.Contains(env, "PATH=") {
		t.Errorf("environment:\n%s", env)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for want, server := range map[string]map[string]any{
		"needs either command or url":             {},
		"need url":                                {"command": "x", "token": "t"},
		"need command":                            {"url": "http://127.0.0.1:1", "args": []any{"x"}},
		"begins with http:// or https://":         {"url": "ftp://example.com"},
		"either token or oauth":                   {"url": "https://example.com", "token": "t", "oauth": map[string]any{"client_id": "a", "client_secret": "b"}},
		`settings.mcp: unknown key "servers.s.x"`: {"command": "x", "x": 1},
	} {
		_, err := teatest.Call(t, mcp.Bundle(), teatest.Request{Action: "mcp.list_tools", Settings: with(server)})
		refused(t, err, tea.ValidationError, want)
	}
	for _, name := range []string{"my_server", "Files", "list", ""} {
		settings := map[string]any{"mcp": map[string]any{"servers": map[string]any{name: map[string]any{"command": "x"}}}}
		_, err := teatest.Call(t, mcp.Bundle(), teatest.Request{Action: "mcp.list_tools", Settings: settings})
		refused(t, err, tea.ValidationError, "servers")
	}
}

func TestCommandThatDoesNotExist(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"no-such-mcp-server", "./no-such-mcp-server"} {
		c := open(t, with(map[string]any{"command": command}))
		_, err := c.call(t.Context(), "mcp.list_tools", map[string]any{"server": "s"})
		refused(t, err, tea.DependencyMissing, command, "settings.mcp.servers.s.command")
	}
}

// One server that cannot be asked must not hide the tools of the others.
func TestListWithABrokenServer(t *testing.T) {
	t.Parallel()
	settings := with(testServer("good"))
	settings["mcp"].(map[string]any)["servers"].(map[string]any)["broken"] = map[string]any{"command": "no-such-mcp-server"}
	c := open(t, settings)
	r := c.must(t, "mcp.list_tools", nil)
	failed, _ := r["failed"].([]any)
	if tools, _ := r["tools"].([]any); len(tools) == 0 || len(failed) != 1 || !strings.Contains(fmt.Sprint(failed), "dependency_missing") {
		t.Errorf("list: %v", r)
	}
	_, err := c.call(t.Context(), "mcp.describe_tools", nil)
	refused(t, err, tea.DependencyMissing, "broken")
}

// accept writes the tools of the settings' servers into their file.
func accept(t *testing.T, settings map[string]any) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mcp-tools.json")
	c := open(t, settings)
	raw, err := json.Marshal(c.must(t, "mcp.describe_tools", nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	settings["mcp"].(map[string]any)["tools_file"] = file
}

func TestAcceptedTools(t *testing.T) {
	t.Parallel()
	settings := with(testServer("good"))
	accept(t, settings)
	same := open(t, settings)
	same.must(t, "mcp.s_add", map[string]any{"a": 1})
	if warnings := same.logged(); warnings != "" {
		t.Errorf("warnings: %s", warnings)
	}

	servers := settings["mcp"].(map[string]any)["servers"].(map[string]any)
	servers["s"] = testServer("changed")
	c := open(t, settings)
	_, err := c.call(t.Context(), "mcp.s_echo", nil)
	refused(t, err, tea.PermissionDenied, "echo", "differs from the accepted one", "tea plugin refresh mcp --workflow")
	_, err = c.call(t.Context(), "mcp.call", map[string]any{"server": "s", "tool": "echo"})
	refused(t, err, tea.PermissionDenied, "echo")
	c.must(t, "mcp.s_add", map[string]any{"a": 1}) // the others still work
	if warnings := c.logged(); !strings.Contains(warnings, `the definition of the tool "echo" differs`) {
		t.Errorf("warnings: %s", warnings)
	}
	for _, tool := range c.must(t, "mcp.list_tools", nil)["tools"].([]any) {
		tool := tool.(map[string]any)
		if (tool["refused"] != nil) != (tool["name"] == "echo") {
			t.Errorf("%v: refused is %v", tool["name"], tool["refused"])
		}
	}

	// A server that was added later has no accepted tools.
	servers["later"] = testServer("good")
	later := open(t, settings)
	_, err = later.call(t.Context(), "mcp.later_add", map[string]any{"a": 1})
	refused(t, err, tea.PermissionDenied, "not among the accepted tools")
}

func TestBrokenFileOfAcceptedTools(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", `{"format": 2}`, `[]`} {
		file := filepath.Join(t.TempDir(), "mcp-tools.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		settings := with(testServer("good"))
		settings["mcp"].(map[string]any)["tools_file"] = file
		c := open(t, settings)
		_, err := c.call(t.Context(), "mcp.s_add", map[string]any{"a": 1})
		refused(t, err, tea.ValidationError, file, "tea plugin refresh mcp --workflow")
		c.must(t, "mcp.describe_tools", nil)
	}
}

// A tool whose definition changes while the server is in use is an attack, also
// where no tools were accepted.
func TestToolsThatChangeDuringARun(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("good")))
	c.must(t, "mcp.s_echo", nil)
	c.must(t, "mcp.s_change", nil)
	// The notification arrives at some time; until then the list is the old one.
	for {
		r, err := c.call(t.Context(), "mcp.s_late", nil)
		if errorType(err) == tea.NotFound {
			continue
		}
		if err != nil || r["text"] != "stolen" {
			t.Fatalf("a new tool: %v, %v", r, err)
		}
		break
	}
	_, err := c.call(t.Context(), "mcp.s_echo", nil)
	refused(t, err, tea.PermissionDenied, `"echo" changed while the server was in use`)
	if warnings := c.logged(); !strings.Contains(warnings, "were not reviewed") || !strings.Contains(warnings, `has the new tool "late"`) {
		t.Errorf("warnings: %s", warnings)
	}
}

func TestElicitation(t *testing.T) {
	t.Parallel()
	var asked any
	for want, answer := range map[string]any{"accept main": map[string]any{"branch": "main"}, "decline <nil>": nil} {
		c := open(t, with(testServer("good")))
		old := open(t, with(testServer("raw", "ask"))) // asks as before the version 2026-07-28 of the protocol
		c.host.Actions = map[string]func(context.Context, any) (any, error){"human.ask": func(_ context.Context, params any) (any, error) {
			asked = params
			return map[string]any{"success": true, "answer": answer, "answered_by": "human", "timed_out": false}, nil
		}}
		old.host.Actions = c.host.Actions
		action, _, _ := strings.Cut(want, " ")
		if got, _ := old.must(t, "mcp.s_echo", nil)["text"].(string); !strings.Contains(got, `"action":"`+action+`"`) {
			t.Errorf("an older server got %s", got)
		}
		if got := c.must(t, "mcp.s_ask", nil)["text"]; got != want {
			t.Errorf("got %v, want %s", got, want)
		}
		if text := fmt.Sprint(asked); !strings.Contains(text, "The MCP server s asks: Which branch?") || !strings.Contains(text, "branch") {
			t.Errorf("asked %v", asked)
		}
	}
	declining := open(t, with(testServer("good"), "elicitation", "decline"))
	if _, err := declining.call(t.Context(), "mcp.s_ask", nil); err == nil || !strings.Contains(err.Error(), "does not support elicitation") {
		t.Errorf("declining: %v", err)
	}
}

// A run that stops to wait for a person ends the call with the error of
// human.ask, not with one of the server.
func TestInterruptDuringElicitation(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("good")))
	suspended := tea.Errorf(tea.Canceled, "the run waits for an answer")
	c.host.Actions = map[string]func(context.Context, any) (any, error){"human.ask": func(context.Context, any) (any, error) { return nil, suspended }}
	_, err := c.call(t.Context(), "mcp.s_ask", nil)
	refused(t, err, tea.Canceled, "waits for an answer")
	c.must(t, "mcp.s_add", map[string]any{"a": 1}) // the session is still in order
}

func TestSampling(t *testing.T) {
	t.Parallel()
	off := open(t, with(testServer("good")))
	if _, err := off.call(t.Context(), "mcp.s_sample", nil); err == nil || !strings.Contains(err.Error(), "does not support CreateMessage") {
		t.Errorf("off: %v", err)
	}
	on := open(t, with(testServer("good"), "sampling", map[string]any{"enabled": true, "model": "m", "max_tokens": 50}))
	var asked any
	on.host.Actions = map[string]func(context.Context, any) (any, error){"llm.call": func(_ context.Context, params any) (any, error) {
		asked = params
		return map[string]any{"success": true, "content": "hi", "model": "m", "finish_reason": "stop"}, nil
	}}
	if got := on.must(t, "mcp.s_sample", nil)["text"]; got != "m: hi" {
		t.Errorf("got %v", got)
	}
	old := open(t, with(testServer("raw", "sample"), "sampling", map[string]any{"enabled": true}))
	old.host.Actions = on.host.Actions
	if got, _ := old.must(t, "mcp.s_echo", nil)["text"].(string); !strings.Contains(got, `"text":"hi"`) {
		t.Errorf("an older server got %s", got)
	}
	on.must(t, "mcp.s_sample", nil)
	want := map[string]any{"model": "m", "max_tokens": int64(50), "system": "be brief", "messages": []any{map[string]any{"role": "user", "content": "say hi"}}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestCancellationReachesTheServer(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("good")))
	c.must(t, "mcp.s_add", map[string]any{"a": 1})
	dir := t.TempDir()
	started, canceled := filepath.Join(dir, "started"), filepath.Join(dir, "canceled")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		if err := await(t.Context(), started); err != nil {
			t.Error(err)
		}
	}()
	_, err := c.call(ctx, "mcp.s_wait", map[string]any{"started": started, "canceled": canceled})
	if errorType(err) != tea.Canceled {
		t.Fatalf("got %v", err)
	}
	if err := await(t.Context(), canceled); err != nil {
		t.Fatal(err)
	}
	c.must(t, "mcp.s_add", map[string]any{"a": 1})
}
