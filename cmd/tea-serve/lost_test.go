package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// removeServerState removes the state of the server, or its whole directory.
func (p *project) removeServerState(everything bool) {
	p.t.Helper()
	path := filepath.Join(p.home, "tea", "runs", "serve")
	if !everything {
		path = filepath.Join(path, "state.jsonl")
	}
	if err := os.RemoveAll(path); err != nil {
		p.t.Fatal(err)
	}
}

func TestMissingStateIsRebuiltFromTheJournals(t *testing.T) {
	t.Parallel()
	for name, everything := range map[string]bool{"the file": false, "the directory": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, map[string]string{
				"ask.yaml":   `nodes: [{name: q, uses: human.ask, with: {question: "Go?", timeout_seconds: 2, on_timeout: default, default: later}, output: {answer: "{{ result.answer }}"}}]`,
				"open.yaml":  `nodes: [{name: q, uses: human.ask, with: {question: "Go?"}, output: {answer: "{{ result.answer }}"}}]`,
				"daily.yaml": "nodes: [{name: n}]\nserve: {triggers: [{every: 100d}]}\n",
			})
			gate := filepath.Join(p.home, "gate")
			p.write("block.yaml", block(gate))
			s := p.serve("--stop-timeout", "1ms")
			killed, canceled := s.started(), s.started()
			if r := s.request("POST", "/v1/runs/"+canceled+"/cancel", ""); r.status > 299 {
				t.Fatal(r)
			}
			s.status(canceled)
			asked, unanswered := s.run("ask", "{}")["id"].(string), s.run("open", "{}")["id"].(string)
			s.kill()
			p.removeServerState(everything)
			s = p.serve("--stop-timeout", "1ms")
			s.log.await(t, "state.jsonl, is missing. According to the journals 1 runs continue and 1 wait")
			if strings.Contains(s.log.String(), "<nil>") {
				t.Errorf("the message has an error that is none:\n%s", s.log)
			}
			s.awaitStatus(killed, "running")
			s.interrupt() // which stops the run
			p.removeServerState(everything)
			open(t, gate)
			s = p.serve()
			if status := s.status(killed); status != "done" {
				t.Errorf("the run that was running is %s\n%s", status, s.log)
			}
			if r := s.request("GET", "/v1/runs/"+canceled, ""); r.body["status"] != "stopped" {
				t.Errorf("the run that was cancelled: %s", r)
			}
			s.awaitStatus(asked, "done")
			if r := s.request("GET", "/v1/runs/"+asked+"/state", ""); r.body["answer"] != "later" {
				t.Errorf("the question past its deadline: %s", r)
			}
			if r := s.request("POST", "/v1/runs/"+unanswered+"/resume?wait=60", `{"answers": {"q": "yes"}}`); r.body["status"] != "done" {
				t.Errorf("the question without a deadline: %s", r)
			}
			s.kill()
			if s = p.serve(); strings.Contains(s.log.String(), "is missing") {
				t.Errorf("the state is missing again:\n%s", s.log)
			}
		})
	}
}

func TestMissingStateProcessesNoFileAgain(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("import.yaml", note(p, "{{ state.event.name }}", `serve: {triggers: [{watch: inbox}]}`))
	p.write("inbox/a", "1")
	p.write("inbox/b", "2")
	s := p.serve()
	s.awaitNotes(p, 2)
	s.awaitStatuses("import", map[string]int{"done": 2})
	s.kill()
	p.removeServerState(false)
	s = p.serve()
	s.log.await(t, "skips 2 files in ")
	p.write("inbox/c", "3")
	s.awaitNotes(p, 3)
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(filepath.Join(p.dir, "inbox", "b"), later, later); err != nil {
		t.Fatal(err)
	}
	s.awaitNotes(p, 4)
	if diff := cmp.Diff([]string{"c", "b"}, p.notes()[2:]); diff != "" {
		t.Errorf("files (-want +got):\n%s\n%s", diff, s.log)
	}
}

func TestFirstStartKeepsOtherRuns(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate))
	p.write("import.yaml", note(p, "{{ state.event.name }}", `serve: {triggers: [{watch: inbox}]}`))
	p.write("inbox/a", "1")
	log := newLogs()
	cmd := p.command(log, "run", "-v", "--durability", "sync", filepath.Join(p.dir, "block.yaml"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log.await(t, "begun")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	open(t, gate)
	s := p.serve()
	s.awaitNotes(p, 1)
	if got := s.statuses("block"); got["stopped"] != 1 || strings.Contains(s.log.String(), "is missing") {
		t.Errorf("runs: %v\n%s", got, s.log)
	}
}
