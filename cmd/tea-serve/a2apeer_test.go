package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// The client of the A2A SDK for Python uses a workflow as an agent.
func TestA2APeer(t *testing.T) {
	t.Parallel()
	python := filepath.Join(peertest.Dir(t, "../..", "a2a"), "python", "bin", "python")
	s := newProject(t, map[string]string{"colors.yaml": "description: Asks for colors.\n" + askTwice}).serveAdmin()
	for _, version := range []string{"1.0", "0.3"} {
		cmd := exec.CommandContext(t.Context(), python, "../../test/a2a/client.py", s.url+"/a2a/colors", version, adminToken)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("version %s: %v\n%s\n%s", version, err, out, s.log)
		}
		want := strings.TrimSpace(`
card colors Asks for colors. colors ['token']
send task INPUT_REQUIRED: Which color?
again task INPUT_REQUIRED: Which color?
again the same task
answer task begun
answer status WORKING
answer status INPUT_REQUIRED: How many?
answer task COMPLETED
answer result 3 blue
get COMPLETED 3.0
stream task begun
stream status WORKING
stream status INPUT_REQUIRED: Which color?
subscribe task INPUT_REQUIRED: Which color?
cancel CANCELED
cancel TaskNotCancelableError
get TaskNotFoundError`)
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(strings.TrimSpace(string(out)), "\n")); diff != "" {
			t.Errorf("version %s (-want +got):\n%s", version, diff)
		}
	}
}

// delegating returns the workflow of the guide that uses an agent.
func delegating(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/guide/a2a.md")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(page), "```") {
		if text, ok := strings.CutPrefix(block, "yaml\n"); ok && strings.HasPrefix(text, "name: delegate\n") {
			return text
		}
	}
	t.Fatal("the guide has no workflow delegate")
	return ""
}

// delegates serves the workflow of the guide with an agent, runs it and answers its
// questions. It returns the last task.
func delegates(t *testing.T, agent string, answers ...string) map[string]any {
	t.Helper()
	p := newProject(t, map[string]string{"delegate.yaml": strings.ReplaceAll(delegating(t), "http://localhost:8311/a2a/colors", agent)})
	s := p.serve(p.withPlugins()...)
	run := s.run("delegate", `{"prompt": "go"}`)
	for _, answer := range answers {
		if run["status"] != "waiting" {
			t.Fatalf("run: %v", run)
		}
		r := s.request("POST", "/v1/runs/"+run["id"].(string)+"/resume?wait=60", `{"answers": {"ask": `+answer+`}}`)
		if run = r.body; r.status != http.StatusOK {
			t.Fatal(r)
		}
	}
	state, _ := run["state"].(map[string]any)
	task, _ := state["task"].(map[string]any)
	if task == nil || run["status"] != "done" {
		t.Fatalf("run: %v", run)
	}
	return task
}

func TestA2AWorkflowUsesAnAgent(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"colors.yaml": askTwice}).serve()
	task := delegates(t, s.url+"/a2a/colors", `"blue"`, `"3"`)
	if data, _ := task["data"].(map[string]any); task["text"] != "3 blue" || data["color"] != "blue" {
		t.Errorf("task: %v", task)
	}
}

// A server of the A2A SDK for Python is the agent.
func TestA2APeerServer(t *testing.T) {
	t.Parallel()
	python := filepath.Join(peertest.Dir(t, "../..", "a2a"), "python", "bin", "python")
	cmd := exec.CommandContext(t.Context(), python, "../../test/a2a/server.py")
	cmd.Stderr = t.Output()
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if task := delegates(t, strings.TrimSpace(url), `"blue"`); task["text"] != "dark blue" {
		t.Errorf("task: %v", task)
	}
}
