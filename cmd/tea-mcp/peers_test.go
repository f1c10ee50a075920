package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// pythonClient calls the tools with the official client for Python. Its only
// argument is the URL of a server, or its command.
const pythonClient = `
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

messages = []

async def answer(context, params):
    messages.append(params.message)
    return types.ElicitResult(action="accept", content={"answer": "yes"})

async def progress(progress, total, message):
    messages.append(message)

async def use(read, write):
    async with ClientSession(read, write, elicitation_callback=answer) as session:
        await session.initialize()
        tools = await session.list_tools()
        greeted = await session.call_tool("greet", {"name": "Ada"}, progress_callback=progress)
        refused = await session.call_tool("greet", {})
        published = await session.call_tool("publish", {})
        runs = await session.read_resource("tea://runs")
        print(json.dumps({
            "tools": sorted(t.name for t in tools.tools),
            "greeted": greeted.structured_content,
            "refused": refused.is_error,
            "published": published.structured_content,
            "runs": len(json.loads(runs.contents[0].text)["runs"]),
            "messages": messages,
        }))

async def main():
    if sys.argv[1].startswith("http"):
        async with streamable_http_client(sys.argv[1]) as streams:
            await use(streams[0], streams[1])
    else:
        async with stdio_client(StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])) as (read, write):
            await use(read, write)

asyncio.run(main())
`

func TestPythonClient(t *testing.T) {
	t.Parallel()
	dir := peertest.Dir(t, "../..", "mcp-peers")
	files := map[string]string{"greet.yaml": greet, "publish.yaml": publish}
	for _, name := range []string{"stdio", "http"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, files)
			args := []string{filepath.Join(dir, "python", "bin", "python"), "-c", pythonClient}
			if name == "http" {
				args = append(args, p.serve().url)
			} else {
				args = append(args, p.program(), "mcp", p.dir)
			}
			text := p.run(args...)
			var got struct {
				Tools              []string
				Greeted, Published outcome
				Refused            bool
				Runs               int
				Messages           []string
			}
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if strings.Join(got.Tools, " ") != "greet publish resume" || got.Greeted.State["greeting"] != "Hello Ada!" || !got.Refused || got.Published.State["sent"] != true || got.Runs != 2 {
				t.Errorf("the client got: %s", text)
			}
			if want := "hello started, hello finished, Publish this: a draft?"; strings.Join(got.Messages, ", ") != want {
				t.Errorf("messages: %q, want %s", got.Messages, want)
			}
		})
	}
}
