package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestsThatAreWrong(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"greet.yaml": greet}).serve()
	id := s.run("greet", `{"name": "x"}`)["id"].(string)
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
		want               string
	}{
		{"PUT", "/v1/workflows/greet/runs", "", nil, 405, "PUT is not a method of /v1/workflows/greet/runs; use POST"},
		{"DELETE", "/v1/runs/" + id, "", nil, 405, "use GET"},
		{"GET", "/v1/nothing", "", nil, 404, "there is nothing at GET /v1/nothing"},
		{"POST", "/v1/workflows/greet/runs?wiat=3", "{}", nil, 400, `unknown parameter \"wiat\"; expected wait`},
		{"POST", "/v1/workflows/greet/runs", `{"inputs": {}}`, nil, 400, `unknown member \"inputs\"; expected input`},
		{"POST", "/v1/workflows/greet/runs", "{\"input\": {\"name\": \"\xff\"}}", nil, 400, "not UTF-8"},
		{"POST", "/v1/workflows/greet/runs", "{}", []string{"Sec-Fetch-Site", "cross-site"}, 403, "other origins"},
		{"POST", "/v1/workflows/greet/runs", "{}", []string{"Sec-Fetch-Site", "same-site"}, 403, "other origins"},
		{"GET", "/v1/workflows", "", []string{"Sec-Fetch-Site", "cross-site"}, 200, "greet"},
		{"GET", "/v1/workflows", "", []string{"Host", "evil.example"}, 403, `\"evil.example\", which is not this machine`},
		{"GET", "/v1/runs?foo=1", "", nil, 400, `unknown parameter \"foo\"`},
		{"GET", "/v1/runs?status=bogus", "", nil, 400, "status: expected running, waiting"},
		{"GET", "/v1/runs?after=zzz", "", nil, 400, "after: expected the next of a page"},
		{"POST", "/v1/runs/" + id + "/cancel", "", nil, 409, "its status is done"},
	} {
		r := s.request(c.method, c.path, c.body, c.header...)
		if r.status != c.status || !strings.Contains(r.text, c.want) {
			t.Errorf("%s %s: %s, want %d %s", c.method, c.path, r, c.status, c.want)
		}
		if c.status == http.StatusMethodNotAllowed && r.header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
	}
}

func TestRunsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": "nodes: [{name: n}]\nserve: {triggers: [{webhook: in, signature: none}]}\n"})
	s := p.serve()
	var want []string
	for n := range 20 {
		path := "/v1/workflows/greet/runs?wait=600"
		if n%2 == 0 {
			path = "/hooks/in"
		}
		r := s.request("POST", path, "{}")
		id, _ := r.body["id"].(string)
		s.status(id)
		want = append([]string{id}, want...)
	}
	check := func() {
		t.Helper()
		var got []string
		for next := ""; ; {
			r := s.request("GET", "/v1/runs?limit=7&after="+next, "")
			for _, run := range r.body["runs"].([]any) {
				run := run.(map[string]any)
				got = append(got, run["id"].(string))
				if run["accepted_at"] == nil || run["attempts"] != 1.0 {
					t.Errorf("run: %v", run)
				}
			}
			if next, _ = r.body["next"].(string); next == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
		if r := s.request("GET", "/v1/runs?trigger=webhook+in", ""); len(r.body["runs"].([]any)) != 10 {
			t.Errorf("runs of the webhook: %s", r)
		}
	}
	check()
	s.interrupt()
	s = p.serve()
	check()
}

func TestLinksAndRemovedFilesAreReported(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	if err := os.Symlink("/nowhere/at/all.yaml", filepath.Join(p.dir, "link.yaml")); err != nil {
		t.Skip(err)
	}
	s := p.serve()
	s.log.await(t, "link.yaml: it is not offered: it is a link to a file that does not exist")
	if err := os.Remove(filepath.Join(p.dir, "greet.yaml")); err != nil {
		t.Fatal(err)
	}
	s.log.await(t, `"workflow removed" workflow=greet`)
}
