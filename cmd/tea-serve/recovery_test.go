package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestRunContinuesAfterAKill(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate)+"serve: {max_running: 1}\n")
	s := p.serve()
	first := s.started()
	second := s.request("POST", "/v1/workflows/block/runs", "").body["id"].(string)
	s.kill()
	open(t, gate)
	s = p.serve()
	for _, id := range []string{first, second} {
		if status := s.status(id); status != "done" {
			t.Errorf("run %s: %s\n%s", id, status, s.log)
		}
	}
}

func TestRunThatKeepsTheServerFromRunningIsParked(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("block.yaml", block(filepath.Join(p.home, "gate")))
	p.write("alarm.yaml", "nodes: [{name: n}]\nserve: {triggers: [{on_run: block, status: [failed], input: {error: \"{{ event.error }}\"}}]}\n")
	s := p.serve()
	id := s.started()
	state := filepath.Join(p.home, "tea", "runs", "serve", "state.jsonl")
	for n := 1; !strings.Contains(s.log.String(), "is parked: the server ended 3 times in a row while the run was at the same step"); {
		text, err := os.ReadFile(state)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), fmt.Sprintf(`"attempts":%d`, n)) { // it is running
			s.kill()
			s = p.serve()
			n++
		}
	}
	if r := s.request("GET", "/v1/runs/"+id, ""); r.body["status"] != "parked" {
		t.Fatalf("run: %s", r)
	}
	for !strings.Contains(s.request("GET", "/v1/runs?workflow=alarm&status=done", "").text, "alarm") {
		continue
	}
}

func TestStoppedServerRefusesWork(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate))
	s := p.serve("--stop-timeout", "10m")
	id := s.started()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Skip(err)
	}
	s.log.await(t, "the server is stopping")
	for s.request("GET", "/readyz", "").status != http.StatusServiceUnavailable {
		continue
	}
	if r := s.request("POST", "/v1/workflows/block/runs", ""); r.status != http.StatusServiceUnavailable {
		t.Errorf("new run: %s", r)
	}
	open(t, gate)
	if err := <-s.done; err != nil {
		t.Errorf("exit: %v\n%s", err, s.log)
	}
	s = p.serve()
	if r := s.request("GET", "/v1/runs/"+id, ""); r.body["status"] != "done" {
		t.Errorf("run: %s", r)
	}
}

func TestRunThatDoesNotEndInTimeContinuesAtTheNextStart(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate))
	s := p.serve("--stop-timeout", "1ms")
	id := s.started()
	s.interrupt()
	open(t, gate)
	s = p.serve()
	if status := s.status(id); status != "done" {
		t.Errorf("run: %s\n%s", status, s.log)
	}
}

func TestQuestionIsDecidedAtItsDeadline(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": `nodes: [{name: q, uses: human.ask, with: {question: "Go?", timeout_seconds: 1, on_timeout: default, default: later}, output: {answer: "{{ result.answer }}"}}]`})
	s := p.serve()
	id := s.run("ask", "{}")["id"].(string)
	s.kill()
	s = p.serve()
	s.log.await(t, "of ask: done")
	if r := s.request("GET", "/v1/runs/"+id+"/state", ""); r.body["answer"] != "later" {
		t.Errorf("state: %s", r)
	}
}

// A failed run is tried again although the server was killed before it had recorded the
// failure, and although the clock was set back since.
func TestFailedRunIsTriedAgainAfterAKill(t *testing.T) {
	t.Parallel()
	for name, progress := range map[string]string{
		"the failure was not recorded": `"running":true`,
		"the clock was set back":       `"failures":1,"failure":"n: internal_error","not_before":"2100-01-01T00:00:00Z"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, nil)
			policy := func(base int) {
				p.write("late.yaml", fmt.Sprintf("nodes: [{name: n, run: 'error(\"no luck\")'}]\nserve: {retry: {max_retries: 1, backoff_base_ms: %d, backoff_max_ms: %[1]d}}\n", base))
			}
			policy(3_600_000)
			s := p.serve()
			id := s.request("POST", "/v1/workflows/late/runs", "{}").body["id"].(string)
			s.log.await(t, "next_attempt")
			s.interrupt()
			p.record(`[{"try":{"id":"` + id + `","attempts":1,` + progress + `}}]`)
			policy(10)
			s = p.serve()
			s.status(id)
			if r := s.request("GET", "/v1/runs/"+id, ""); r.body["status"] != "failed" || r.body["attempts"] != 2.0 {
				t.Errorf("run: %s\n%s", r, s.log)
			}
		})
	}
}

func TestSecondServerOfTheRunsIsRefused(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	s := p.serve()
	log := newLogs()
	if err := p.command(log, "serve", p.dir, "--listen", "127.0.0.1:0").Run(); err == nil || !strings.Contains(log.String(), "another tea serve uses the directory of runs") {
		t.Errorf("second server: %v\n%s", err, log)
	}
	s.interrupt()
}

// TestAcceptedRequestsSurviveKills kills the server under load: each request that
// was answered has its run, and no key has two.
func TestAcceptedRequestsSurviveKills(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("count.yaml", note(p, "{{ state.key }}", "serve: {max_running: 4, keep_runs: 100000}\n"))
	const kills, clients = 8, 4
	accepted := map[string]string{} // run by key
	var mu sync.Mutex
	for round := range kills {
		s := p.serve()
		dead := make(chan struct{})
		answered := make(chan struct{}, 10000)
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-dead:
						return
					default:
					}
					key := fmt.Sprintf("%d-%d-%d", round, c, n)
					send := func() (string, bool) {
						r, err := s.try("POST", "/v1/workflows/count/runs", `{"input": {"key": "`+key+`"}}`, "Idempotency-Key", key)
						id, _ := r.body["id"].(string)
						return id, err == nil && r.status < 300
					}
					id, ok := send()
					if ok && n%3 == 0 {
						if again, ok := send(); ok && again != id {
							t.Errorf("key %s: runs %s and %s", key, id, again)
						}
					}
					if ok {
						mu.Lock()
						accepted[key] = id
						mu.Unlock()
						answered <- struct{}{}
					}
				}
			})
		}
		for range 10 + 7*round {
			<-answered
		}
		s.kill()
		close(dead)
		wg.Wait()
	}
	s := p.serve()
	for key, id := range accepted {
		if status := s.status(id); status != "done" {
			t.Errorf("key %s, run %s: %s\n%s", key, id, status, s.log)
		}
		if r := s.request("POST", "/v1/workflows/count/runs", `{"input": {"key": "`+key+`"}}`, "Idempotency-Key", key); r.body["id"] != id {
			t.Errorf("key %s again: %s, want run %s", key, r, id)
		}
	}
	s.interrupt()
	runs := map[string]bool{}
	for _, n := range p.notes() {
		runs[n] = true
	}
	for key := range accepted {
		if !runs[key] {
			t.Errorf("key %s has not run", key)
		}
	}
	if len(accepted) < kills*10 {
		t.Errorf("%d requests", len(accepted))
	}
}

// The deadline of a question passes while the server runs.
func TestDeadlinePassesWithoutARestart(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": `nodes: [{name: q, uses: human.ask, with: {question: "Go?", timeout_seconds: 1, on_timeout: default, default: later}, output: {answer: "{{ result.answer }}"}}]`})
	s := p.serve()
	s.run("ask", "{}")
	s.log.await(t, "of ask: done")
	if text := s.log.String(); strings.Contains(text, "could not start") {
		t.Errorf("log:\n%s", text)
	}
}

// The end of a run while the server stops starts what follows it, at the next start.
func TestEndWhileTheServerStopsStartsFollowers(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"next.yaml": "nodes: [{name: n}]\nserve: {triggers: [{on_run: block}]}\n"})
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate))
	s := p.serve("--stop-timeout", "10m")
	s.started()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Skip(err)
	}
	s.log.await(t, "the server is stopping")
	for s.request("GET", "/readyz", "").status != http.StatusServiceUnavailable {
		continue
	}
	open(t, gate)
	if err := <-s.done; err != nil {
		t.Errorf("exit: %v\n%s", err, s.log)
	}
	s = p.serve()
	s.log.await(t, "of next: done")
}

// A run whose checkpoint is damaged is shown with the reason and can be stopped.
func TestRunWithADamagedCheckpointIsParked(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("block.yaml", block(filepath.Join(p.home, "gate")))
	s := p.serve()
	id := s.started()
	s.kill()
	file := filepath.Join(p.home, "tea", "runs", id+".tea")
	if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = p.serve()
	if r := s.request("GET", "/v1/runs/"+id, ""); r.body["status"] == nil || !strings.Contains(r.text, "damaged") {
		t.Errorf("before it is parked: %s", r)
	}
	s.log.await(t, "is parked: ")
	if r := s.request("GET", "/v1/runs/"+id, ""); r.body["status"] != "parked" || !strings.Contains(fmt.Sprint(r.body["error"]), "damaged") {
		t.Errorf("run: %s", r)
	}
	if r := s.request("POST", "/v1/runs/"+id+"/cancel", ""); r.body["status"] != "stopped" {
		t.Errorf("cancel: %s", r)
	}
	if r := s.request("GET", "/v1/runs?status=parked", ""); strings.Contains(r.text, id) {
		t.Errorf("parked: %s", r)
	}
	if text, err := os.ReadFile(file); string(text) != "damaged" {
		t.Errorf("the checkpoint was changed: %q, %v", text, err)
	}
}

// The state of the server has references in place of secrets, as checkpoints do.
func TestStateHasNoSecrets(t *testing.T) {
	t.Parallel()
	const key = "sk-ABCDEFGH12345678"
	p := newProject(t, map[string]string{
		"greet.yaml": greet + "serve: {max_running: 1}\n",
		"ask.yaml":   "nodes: [{name: q, uses: human.ask, with: {question: \"Go on?\"}}, {name: n, run: 'return {key = state.q, size = string.len(state.answer)}'}]\n",
	})
	p.write("block.yaml", block(filepath.Join(p.home, "gate")))
	args := []string{"--secrets", `{"KEY": "` + key + `"}`, "--max-running", "1"}
	s := p.serve(args...)
	asked := s.run("ask", "{}")["id"].(string)
	s.started()
	greeted := s.request("POST", "/v1/workflows/greet/runs", `{"input": {"name": "`+key+`"}}`, "Idempotency-Key", key).body["id"].(string)
	s.request("POST", "/v1/runs/"+asked+"/resume", `{"answers": {"q": "`+key+`"}}`)
	text, err := os.ReadFile(filepath.Join(p.home, "tea", "runs", "serve", "state.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), key[3:9]) {
		t.Errorf("state:\n%s", text)
	}
	s.kill()
	open(t, filepath.Join(p.home, "gate"))
	s = p.serve(args...)
	if again := s.request("POST", "/v1/workflows/greet/runs", `{"input": {"name": "`+key+`"}}`, "Idempotency-Key", key).body["id"]; again != greeted {
		t.Errorf("a key with a secret is another one after a restart: %v", again)
	}
	for _, id := range []string{asked, greeted} {
		if status := s.status(id); status != "done" {
			t.Errorf("run %s: %s", id, status)
		}
	}
	if r := s.request("GET", "/v1/runs/"+asked+"?state=true", ""); !strings.Contains(r.text, fmt.Sprintf(`"size":%d`, len(key))) {
		t.Errorf("answer: %s", r)
	}
}
