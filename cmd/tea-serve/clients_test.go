package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// generators has the programs that generate clients, and a server for the clients.
type generators struct {
	t        *testing.T
	dir      string
	peers    string
	document string
	url      string
	token    string
}

func newGenerators(t *testing.T) *generators {
	t.Helper()
	g := &generators{t: t, dir: t.TempDir(), peers: peertest.Dir(t, "../..", "openapi-clients"), token: "0123456789abcdef0123"}
	p := newProject(t, map[string]string{"ask.yaml": ask})
	tokens := filepath.Join(p.home, "tokens")
	if err := os.WriteFile(tokens, []byte("admin "+g.token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.serve("--token-file", tokens)
	g.url, g.document = s.url, filepath.Join(g.dir, "openapi.json")
	if err := os.WriteFile(g.document, []byte(s.request("GET", "/v1/openapi.json", "").text), 0o600); err != nil {
		t.Fatal(err)
	}
	return g
}

// run runs a program in the directory of the generated files.
func (g *generators) run(program string, args ...string) {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), program, args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "PYTHONPATH="+g.dir, "PYTHONDONTWRITEBYTECODE=1", "PATH="+filepath.Join(g.peers, "python/bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		g.t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
}

// client returns the absolute name of a program of test/openapi-clients.
func (g *generators) client(name string) string {
	g.t.Helper()
	path, err := filepath.Abs(filepath.Join("../../test/openapi-clients", name))
	if err != nil {
		g.t.Fatal(err)
	}
	return path
}

func TestGeneratedPythonClient(t *testing.T) {
	t.Parallel()
	g := newGenerators(t)
	g.run(filepath.Join(g.peers, "python/bin/openapi-python-client"), "generate", "--path", g.document, "--output-path", filepath.Join(g.dir, "tea_client"), "--meta", "none")
	g.run(filepath.Join(g.peers, "python/bin/python"), g.client("client.py"), g.url, g.token, pack(t, "1.0.0", false), pack(t, "2.0.0", false))
}

func TestGeneratedTypeScriptTypes(t *testing.T) {
	t.Parallel()
	g := newGenerators(t)
	g.node()
	g.run(filepath.Join(g.peers, "node_modules/.bin/openapi-typescript"), g.document, "-o", "api.d.ts")
	g.typescript("client.mts")
	g.run("node", "client.mjs", g.url, g.token, pack(t, "1.0.0", false), pack(t, "2.0.0", false))
}

// node links the packages of Node.js into the directory.
func (g *generators) node() {
	g.t.Helper()
	if err := os.Symlink(filepath.Join(g.peers, "node_modules"), filepath.Join(g.dir, "node_modules")); err != nil {
		g.t.Fatal(err)
	}
}

// typescript compiles a program in the directory. It imports the other files.
func (g *generators) typescript(name string, others ...string) {
	g.t.Helper()
	for _, name := range append(others, name) {
		text, err := os.ReadFile(g.client(name))
		if err != nil {
			g.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(g.dir, name), text, 0o600); err != nil {
			g.t.Fatal(err)
		}
	}
	g.run(filepath.Join(g.peers, "node_modules/.bin/tsc"), "--strict", "--noEmitOnError", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--types", "node", name)
}

// chatFlows are a workflow that answers a chat with its options, and one that fails.
var chatFlows = map[string]string{
	"options.yaml": `nodes: [{name: n, uses: json.stringify, with: {data: "{{ state.chat_options }}"}, output: {answer: "{{ result.text }}"}}]`,
	"fail.yaml":    `nodes: [{name: n, run: 'error("no luck")'}]`,
}

// TestOpenAIPythonClient sends each option that OpenAI's client has: it is refused, or
// the workflow gets it.
func TestOpenAIPythonClient(t *testing.T) {
	t.Parallel()
	g := &generators{t: t, dir: t.TempDir(), peers: peertest.Dir(t, "../..", "litellm")}
	g.run(filepath.Join(g.peers, "python/bin/python"), g.client("chat.py"), newProject(t, chatFlows).serve().url, g.client("chat-options.json"))
}

func TestOpenAIJavaScriptClient(t *testing.T) {
	t.Parallel()
	g := &generators{t: t, dir: t.TempDir(), peers: peertest.Dir(t, "../..", "openapi-clients")}
	g.node()
	g.typescript("chat.mts", "chat-options.json")
	g.run("node", "chat.mjs", newProject(t, chatFlows).serve().url)
}
