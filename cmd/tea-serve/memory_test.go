package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// memoryPlugins builds the plugins memory and graph, and returns their directory.
var memoryPlugins = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tea-plugin")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"memory", "graph"} {
		cmd := exec.Command("go", "build", "-o", dir+"/", "./cmd/tea-plugin-"+name)
		cmd.Dir = "../../plugins/" + name
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build the plugin %s: %w\n%s", name, err, out)
		}
	}
	return dir, nil
})

// remembering returns a server where the workflow keeper has stored entries, vectors, a session
// and a graph.
func remembering(t *testing.T) *service {
	t.Helper()
	peertest.Long(t, "builds the plugins memory and graph")
	plugins, err := memoryPlugins()
	if err != nil {
		t.Fatal(err)
	}
	p := newProject(t, nil)
	p.write("keeper.yaml", `
settings: {memory: {path: `+p.home+`/memory}, graph: {path: `+p.home+`/graph}}
nodes:
  - {name: entries, uses: ltm.store, with: {items: [{key: user/ada, value: {likes: tea}}, {key: user/bob, value: "<img src=x onerror=alert(1)> likes {{ secrets.key }}"}]}}
  - {name: vectors, uses: vector.store, with: {collection: ltm, texts: [pump, valve, cat], ids: [pump, valve, cat], embeddings: [[1, 0, 0.1], [0.9, 0.1, 0], [0, 0, 1]]}}
  - {name: session, uses: session.create, with: {session_id: first, user_id: ada}}
  - {name: graph, uses: graph.store_entities, with: {entities: [{entity_id: pump-1, entity_type: pump, text: the pump of line one}, {entity_id: line-1, entity_type: line}, {entity_id: line-2, entity_type: line}]}}
  - {name: relation, uses: graph.store_relation, with: {from_entity: pump-1, to_entity: line-1, relation_type: feeds}}
`)
	s := p.serveAdmin("--plugins", plugins, "--secrets", `{"key": "hidden-key"}`)
	if run := s.run("keeper", "{}"); run["status"] != "done" {
		t.Fatalf("run: %v", run)
	}
	return s
}

// pageMemory shows the memory: all roles read it, admins also delete entries.
func pageMemory(t *testing.T, c *chromium) {
	s := remembering(t)
	const path = "/v1/workflows/keeper/memory/"
	for request, want := range map[string]int{
		"ltm.store {}":                       http.StatusNotFound,
		`ltm.list {"limit": 0}`:              http.StatusUnprocessableEntity,
		`ltm.list {"nosuch": 1}`:             http.StatusBadRequest,
		`graph.subgraph {"entity_id": "no"}`: http.StatusNotFound,
	} {
		action, body, _ := strings.Cut(request, " ")
		if r := s.request("POST", path+action, body); r.status != want {
			t.Errorf("%s: %s", request, r)
		}
	}
	if r := s.request("POST", "/v1/workflows/nosuch/memory/ltm.list", "{}"); r.status != http.StatusNotFound {
		t.Errorf("no workflow: %s", r)
	}
	if r := s.request("POST", path+"ltm.delete", `{"key": "user/ada"}`, "Authorization", "Bearer 0123456789abcdef0123"); r.status != http.StatusForbidden {
		t.Errorf("the role run deletes: %s", r)
	}
	if r := s.request("POST", path+"ltm.list", "{}", "Authorization", "Bearer 0123456789abcdef0123"); r.status != http.StatusOK || strings.Contains(r.text, "hidden-key") {
		t.Errorf("entries: %s", r)
	}
	const rows = "[...document.querySelectorAll('tbody tr')].map(e => e.innerText.replace(/\\s+/g, ' ')).join('|')"
	for _, token := range []string{"0123456789abcdef0123", adminToken} {
		b := c.open(t, s.url+"/#/memory")
		b.fill("Token", token)
		b.click("dialog button", "Use")
		b.await(rows + ".includes('user/ada {\"likes\":\"tea\"}') && " + rows + ".includes('likes ***')")
		b.has("2 ltm")
		if token != adminToken {
			b.await("!document.querySelector('tbody button')")
			b.accessible("memory")
		}
		b.fill("Search", "tea")
		b.await("document.querySelectorAll('tbody tr').length === 1 && " + rows + ".startsWith('user/ada') && Number(" + rows + ".split(' ')[2]) > 0")
		b.fill("Search", "")
		b.fill("Show", "Vectors")
		b.click("button[aria-label='Near pump']", "Show")
		b.await(rows + ".startsWith('pump pump 1.000|valve valve 0.9')")
		b.fill("Show", "Sessions")
		b.await(rows + ".startsWith('first ada active')")
		b.fill("Show", "Graph")
		b.has("Its neighbours are drawn.")
		b.fill("Search", "pump")
		b.await("document.querySelector('.graph svg') && document.querySelector('.graph').textContent.includes('feeds') && !document.querySelector('.graph').textContent.includes('line-2')")
		if token != adminToken {
			b.accessible("memory-graph")
		}
		b.eval("[...document.querySelectorAll('.graph [role=button]')].find(e => e.textContent.includes('line-1')).dispatchEvent(new MouseEvent('click', {bubbles: true}))")
		b.await("[...document.querySelectorAll('h2')].some(e => e.textContent === 'Around line-1')")
		b.await("location.hash.includes('view=Graph') && location.hash.includes('q=pump')")
		if token == adminToken {
			b.fill("Search", "")
			b.fill("Show", "Entries")
			b.click("tbody button[aria-label='Delete user/bob …']", "Delete")
			b.click("dialog button", "Delete")
			b.await("document.querySelectorAll('tbody tr').length === 1")
		}
	}
}
