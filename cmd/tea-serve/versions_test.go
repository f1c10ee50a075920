package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWaitingRunIsAnsweredAfterAnEdit(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": ask})
	s := p.serve()
	first, second := s.run("ask", "{}")["id"].(string), s.run("ask", "{}")["id"].(string)
	offered := strings.Count(s.log.String(), "workflow offered")
	p.write("ask.yaml", strings.Replace(ask, "m = state.n + 1", "m = 0, new = true", 1))
	s.log.Until(t, "workflow offered", func() bool { return strings.Count(s.log.String(), "workflow offered") > offered })
	check := func(id string) {
		t.Helper()
		r := s.request("POST", "/v1/runs/"+id+"/resume?wait=600", `{"answers": {"q": "yes"}}`)
		state, _ := r.body["state"].(map[string]any)
		if r.body["status"] != "done" || state["answer"] != "yes" || state["m"] != 2.0 || state["new"] != nil {
			t.Errorf("resumed: %s\n%s", r, s.log)
		}
		if r := s.request("GET", "/v1/runs/"+id+"/state", ""); r.body["m"] != 2.0 {
			t.Errorf("state: %s", r)
		}
	}
	check(first)
	s.kill()
	s = p.serve()
	check(second)
}

func TestUnfinishedRunContinuesAfterAnEdit(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*service){"kill": (*service).kill, "stop": (*service).interrupt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, nil)
			gate := filepath.Join(p.home, "gate")
			p.write("block.yaml", block(gate)+"  - {name: version, run: 'return {version = 1}'}\n")
			s := p.serve("--stop-timeout", "1ms")
			id := s.started()
			stop(s)
			p.write("block.yaml", block(gate)+"  - {name: version, run: 'return {version = 2}'}\n")
			open(t, gate)
			s = p.serve()
			if status := s.status(id); status != "done" {
				t.Errorf("run: %s\n%s", status, s.log)
			}
			if r := s.request("GET", "/v1/runs/"+id+"/state", ""); r.body["version"] != 1.0 {
				t.Errorf("state: %s", r)
			}
		})
	}
}

func TestAnswerIsRefusedIfTheVersionOfTheRunIsGone(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": ask})
	s := p.serve()
	id := s.run("ask", "{}")["id"].(string)
	s.interrupt()
	sources, err := filepath.Glob(filepath.Join(p.home, "tea", "runs", "sources", "*"))
	if err != nil || len(sources) != 1 {
		t.Fatalf("sources: %v, %v", sources, err)
	}
	if err := os.Remove(sources[0]); err != nil {
		t.Fatal(err)
	}
	p.write("ask.yaml", strings.Replace(ask, "m = state.n + 1", "m = 5", 1))
	s = p.serve()
	if r := s.request("POST", "/v1/runs/"+id+"/resume?wait=600", `{"answers": {"q": "yes"}}`); r.status != http.StatusConflict || !strings.Contains(r.text, "migrate") {
		t.Errorf("answer: %s", r)
	}
	r := s.request("POST", "/v1/runs/"+id+"/resume?wait=600", `{"answers": {"q": "yes"}, "migrate": true}`)
	if state, _ := r.body["state"].(map[string]any); r.body["status"] != "done" || state["m"] != 5.0 {
		t.Errorf("migrated: %s\n%s", r, s.log)
	}
}
