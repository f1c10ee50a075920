package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// page returns the ids of a page, and which of them the server has described.
func (s *service) page(query string) (r response, ids, described []string) {
	s.t.Helper()
	r = s.request("GET", "/v1/runs"+query, "")
	for _, run := range r.body["runs"].([]any) {
		run := run.(map[string]any)
		ids = append(ids, run["id"].(string))
		if run["unchanged"] == nil {
			described = append(described, run["id"].(string))
		}
	}
	return r, ids, described
}

func TestARefreshHasOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet, "ask.yaml": ask})
	s := p.serve()
	for range 3 {
		s.run("greet", `{"name": "Ada"}`)
	}
	waits := s.run("ask", "{}")["id"].(string)
	first, all, _ := s.page("")
	if r := first.body["runs"].([]any)[0].(map[string]any); r["question"] != "Go on?" {
		t.Errorf("waiting run: %v", r)
	}
	known := fmt.Sprintf("?known=%.0f", first.body["version"])
	if _, ids, described := s.page(known); !slices.Equal(ids, all) || len(described) != 0 {
		t.Errorf("nothing changed: %v of %v", described, ids)
	}
	s.request("POST", "/v1/runs/"+waits+"/resume?wait=600", `{"answers": {"q": "yes"}}`)
	if _, ids, described := s.page(known); !slices.Equal(ids, all) || !slices.Equal(described, []string{waits}) {
		t.Errorf("one run was answered: %v of %v", described, ids)
	}
	if err := os.Remove(filepath.Join(filepath.Join(p.home, "tea", "runs"), all[2]+".tea")); err != nil {
		t.Fatal(err)
	}
	if _, ids, _ := s.page(known); slices.Contains(ids, all[2]) {
		t.Errorf("a removed run is listed: %v", ids)
	}
	s.interrupt()
	s = p.serve()
	if _, ids, described := s.page(known); len(described) != len(ids) {
		t.Errorf("after a restart: %v of %v", described, ids)
	}
}

// Runs are found by the beginning of their input, also before they start, and not by
// secrets or by what follows the input in a checkpoint.
func TestRunsAreFoundByTheirInput(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet + "serve: {max_running: 1}\n"})
	p.write("block.yaml", block(filepath.Join(p.home, "gate"))+"serve: {max_running: 1}\n")
	s := p.serve("--secrets", `{"key": "hidden-key"}`)
	ada := s.run("greet", `{"name": "Ada Lovelace", "part": "`+strings.Repeat("x", 3000)+`"}`)["id"].(string)
	bob := s.run("greet", `{"name": "Bob", "key": "hidden-key"}`)["id"].(string)
	s.started()
	queued := s.request("POST", "/v1/workflows/block/runs", `{"input": {"name": "Carol"}}`).body["id"].(string)
	for q, want := range map[string][]string{"lovelace": {ada}, "greet+bob": {bob}, "carol": {queued}, "hidden-key": {}, "data_dir": {}, "***": {bob}} {
		if _, ids, _ := s.page("?q=" + q); !slices.Equal(ids, want) {
			t.Errorf("%s: %v, want %v", q, ids, want)
		}
	}
	if got := p.tea(nil, "runs", "list", "--search", "lovelace"); !strings.Contains(got.out, ada) || strings.Contains(got.out, bob) {
		t.Errorf("runs list: %+v", got)
	}
}

// The command selects runs by their trigger, from a directory and on a server.
func TestRunsAreListedByTheirTrigger(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet + "serve: {triggers: [{name: nightly, cron: \"0 3 * * *\", input: {name: Ada}}]}\n"})
	s := p.serve()
	other := s.run("greet", `{"name": "Bob"}`)["id"].(string)
	id := s.request("POST", "/v1/workflows/greet/triggers/nightly/run", "").body["id"].(string)
	s.events(id, "", func(event) bool { return true })
	for _, args := range [][]string{{"runs", "list"}, {"--host", s.url, "runs", "list"}} {
		if got := p.tea(nil, append(args, "--trigger", "nightly")...); !strings.Contains(got.out, id) || strings.Contains(got.out, other) {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
