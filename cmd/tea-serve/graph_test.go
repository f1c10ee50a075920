package main

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// classes returns the classes of the nodes of a drawing, by name.
func (s *service) classes(path string) map[string]string {
	s.t.Helper()
	r := s.request("GET", path, "")
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`<g class="([^"]*)">.*?<text class="name"[^>]*>([^<]*)<`).FindAllStringSubmatch(r.text, -1) {
		out[m[2]] = m[1]
	}
	if r.status != 200 || len(out) == 0 {
		s.t.Errorf("%s: %s", path, r)
	}
	return out
}

func TestGraphOfARunShowsItsNodes(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": ask})
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate)+"serve: {max_running: 1}\n")
	s := p.serve()
	if diff := cmp.Diff(map[string]string{"first": "lua", "q": "ask", "last": "lua"}, dropEnds(s.classes("/v1/workflows/ask/graph.svg"))); diff != "" {
		t.Errorf("workflow (-want +got):\n%s", diff)
	}
	id := s.run("ask", "{}")["id"].(string)
	graph := "/v1/runs/" + id + "/graph.svg"
	if diff := cmp.Diff(map[string]string{"first": "lua done", "q": "ask waiting", "last": "lua unreached"}, dropEnds(s.classes(graph))); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	s.request("POST", "/v1/runs/"+id+"/resume?wait=600", `{"answers": {"q": "no"}}`)
	if diff := cmp.Diff(map[string]string{"first": "lua done", "q": "ask done", "last": "lua done"}, dropEnds(s.classes(graph))); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	blocked := s.request("POST", "/v1/workflows/block/runs", "{}").body["id"].(string)
	queued := s.request("POST", "/v1/workflows/block/runs", "{}").body["id"].(string)
	s.events(blocked, "", func(e event) bool { return e.data["event"] != "node_start" || e.data["path"] != "wait" })
	if got := s.classes("/v1/runs/" + blocked + "/graph.svg"); got["begun"] != "lua done" || got["wait"] != "loop body running" {
		t.Errorf("running: %v", got)
	}
	if diff := cmp.Diff("lua unreached", s.classes("/v1/runs/" + queued + "/graph.svg")["begun"]); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
	s.kill()
	s = p.serve("--max-running", "1")
	if got := s.classes("/v1/runs/" + id + "/graph.svg"); got["last"] != "lua done" {
		t.Errorf("after a restart: %v", got)
	}
}

func dropEnds(classes map[string]string) map[string]string {
	delete(classes, "start")
	delete(classes, "end")
	return classes
}
