package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// program writes a script that is tea-mcp with the environment of the project,
// for clients that start it.
func (p *project) program() string {
	p.t.Helper()
	cmd := p.command(newLogs())
	var script strings.Builder
	script.WriteString("#!/bin/sh\nexec env")
	for _, entry := range cmd.Env[len(os.Environ()):] {
		script.WriteString(" '" + entry + "'")
	}
	script.WriteString(" '" + cmd.Path + "' \"$@\"\n")
	file := filepath.Join(p.t.TempDir(), "tea")
	if err := os.WriteFile(file, []byte(script.String()), 0o700); err != nil {
		p.t.Fatal(err)
	}
	return file
}

// run runs a client and returns what it prints.
func (p *project) run(args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), args[0], args[1:]...)
	cmd.Dir = p.home
	cmd.Env = append(os.Environ(), "HOME="+p.home, "NO_COLOR=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

// inspect runs the official Inspector's command line with a method.
func (p *project) inspect(dir string, target []string, method ...string) map[string]any {
	p.t.Helper()
	args := append([]string{filepath.Join(dir, "node_modules", ".bin", "mcp-inspector"), "--cli"}, target...)
	out := p.run(append(append(args, "--method"), method...)...)
	var v map[string]any
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		p.t.Fatalf("the Inspector printed no JSON: %v\n%s", err, out)
	}
	return v
}

func TestInspector(t *testing.T) {
	t.Parallel()
	dir := peertest.Dir(t, "../..", "mcp-peers")
	p := newProject(t, map[string]string{"greet.yaml": greet, "publish.yaml": publish})
	w := p.serve()
	for name, target := range map[string][]string{
		"stdio": {p.program(), "mcp", p.dir},
		"http":  {w.url, "--transport", "http"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &project{t, p.dir, p.home}
			var names []string
			for _, tool := range p.inspect(dir, target, "tools/list")["tools"].([]any) {
				names = append(names, tool.(map[string]any)["name"].(string))
			}
			if got := strings.Join(names, " "); got != "greet publish resume" {
				t.Errorf("tools: %s", got)
			}
			called := p.inspect(dir, target, "tools/call", "--tool-name", "greet", "--tool-arg", "name=Ada")
			out, _ := called["structuredContent"].(map[string]any)
			if out["status"] != "done" || out["state"].(map[string]any)["greeting"] != "Hello Ada!" {
				t.Errorf("greet: %v", called)
			}
			called = p.inspect(dir, target, "tools/call", "--tool-name", "publish")
			out, _ = called["structuredContent"].(map[string]any)
			id, _ := out["run_id"].(string)
			if out["status"] != "waiting" {
				t.Fatalf("publish: %v", called)
			}
			read := p.inspect(dir, target, "resources/read", "--uri", "tea://runs/"+id)
			if text := read["contents"].([]any)[0].(map[string]any)["text"].(string); !strings.Contains(text, "Publish this: a draft?") {
				t.Errorf("the resource of the run: %s", text)
			}
			called = p.inspect(dir, target, "tools/call", "--tool-name", "resume", "--tool-arg", "run_id="+id, "--tool-arg", `answers={"review:ask":"yes"}`)
			out, _ = called["structuredContent"].(map[string]any)
			if out["status"] != "done" || out["state"].(map[string]any)["sent"] != true {
				t.Errorf("resume: %v", called)
			}
		})
	}
}

// pythonClient uses the server with the official client for Python. Its arguments are
// the mode, "legacy" for a handshake, and the URL of a server or its command.
const pythonClient = `
import asyncio, json, sys
from mcp import Client, StdioServerParameters, types
from mcp.shared.exceptions import MCPError

messages, records = [], []

async def answer(context, params):
    messages.append(params.message)
    return types.ElicitResult(action="accept", content={"answer": "yes"})

async def progress(progress, total, message):
    messages.append(message)

async def log(params):
    records.append(params.level)

async def code(request):
    try:
        await request
    except MCPError as e:
        return e.error.code
    return 0

async def main():
    mode, target = sys.argv[1], sys.argv[2:]
    server = target[0] if target[0].startswith("http") else StdioServerParameters(command=target[0], args=target[1:])
    async with Client(server, mode=mode, elicitation_callback=answer, logging_callback=log, log_level="info") as client:
        got = {"version": client.protocol_version, "ping": await code(client.send_ping()), "log_level": await code(client.set_logging_level("info"))}
        tools = await client.list_tools()
        got["tools"] = sorted(t.name for t in tools.tools)
        got["greeted"] = (await client.call_tool("greet", {"name": "Ada"}, progress_callback=progress)).structured_content
        got["refused"] = (await client.call_tool("greet", {})).is_error
        got["unknown"] = [await code(client.call_tool("nothing", {})), await code(client.read_resource("tea://runs/nothing")), await code(client.get_prompt("nothing"))]
        if mode == "legacy":
            published = await client.call_tool("publish", {})
        else:
            async with client.listen(tools_list_changed=True, resources_list_changed=True) as heard:
                got["heard"] = [heard.honored.tools_list_changed, heard.honored.resources_list_changed]
            asked = await client.session.call_tool("publish", {}, allow_input_required=True)
            got["asked"] = [asked.result_type, [r.params.message for r in asked.input_requests.values()]]
            answers = {key: types.ElicitResult(action="accept", content={"answer": "yes"}) for key in asked.input_requests}
            published = await client.session.call_tool("publish", {}, input_responses=answers, request_state=asked.request_state)
            await client.call_tool("publish", {})
        got["published"] = published.structured_content
        runs = await client.read_resource("tea://runs")
        got["runs"] = len(json.loads(runs.contents[0].text)["runs"])
        got["messages"], got["records"] = messages, records
        print(json.dumps(got))

asyncio.run(main())
`

// The results are in the table of docs/guide/mcp.md.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	dir := peertest.Dir(t, "../..", "mcp-peers")
	files := map[string]string{"greet.yaml": greet, "publish.yaml": publish}
	for _, name := range []string{"stdio", "http"} {
		for _, version := range versions {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				p := newProject(t, files)
				handshake := version < "2026"
				args := []string{filepath.Join(dir, "python", "bin", "python"), "-W", "ignore", "-c", pythonClient, "auto"}
				if handshake {
					args[len(args)-1] = "legacy"
				}
				if name == "http" {
					args = append(args, p.serve().url)
				} else {
					args = append(args, p.program(), "mcp", p.dir)
				}
				text := p.run(args...)
				type report struct {
					Version  string
					Ping     int
					LogLevel int `json:"log_level"`
					Tools    []string
					Refused  bool
					Unknown  []int
					Heard    []any
					Asked    []any
					Runs     int
					Messages []string
					Records  []string
				}
				var results struct{ Greeted, Published outcome }
				var got report
				if err := errors.Join(json.Unmarshal([]byte(text), &got), json.Unmarshal([]byte(text), &results)); err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				question := "Publish this: a draft?"
				want := report{
					Version: version, Tools: []string{"greet", "publish", "resume"}, Refused: true, Unknown: []int{-32602, -32602, -32602}, Runs: 2,
					Messages: []string{"hello started", "hello finished", question}, Records: []string{"info"},
				}
				if !handshake {
					want.Ping, want.LogLevel, want.Runs = -32601, -32601, 3
					want.Heard, want.Asked = []any{true, nil}, []any{"input_required", []any{question}}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				if results.Greeted.State["greeting"] != "Hello Ada!" || results.Published.State["sent"] != true {
					t.Errorf("the client got: %s", text)
				}
			})
		}
	}
}
