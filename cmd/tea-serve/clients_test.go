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
	if err := os.Symlink(filepath.Join(g.peers, "node_modules"), filepath.Join(g.dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(g.client("client.mts"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(g.dir, "client.mts"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(g.dir, "node_modules/.bin")
	g.run(filepath.Join(bin, "openapi-typescript"), g.document, "-o", "api.d.ts")
	g.run(filepath.Join(bin, "tsc"), "--strict", "--noEmitOnError", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--types", "node", "client.mts")
	g.run("node", "client.mjs", g.url, g.token, pack(t, "1.0.0", false), pack(t, "2.0.0", false))
}
