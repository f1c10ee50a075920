package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
	"github.com/the-edge-agent/tea/test/teaproc"
)

// awaitReady waits until the server reports a status of its readiness.
func (s *service) awaitReady(status int) (r response) {
	s.t.Helper()
	teaproc.Poll(s.t, func() (bool, any) {
		r = s.request("GET", "/readyz", "")
		return r.status == status, r
	})
	return r
}

func TestFullDiskIsReported(t *testing.T) {
	t.Parallel()
	disk := smalldisktest.New(t, "2m")
	p := newProject(t, map[string]string{"greet.yaml": greet})
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate))
	s := p.serve("-c", disk.Dir)
	id := s.started()
	disk.Fill(t, 0)
	var r response
	for r.status < 300 { // the last page of the file has room
		r = s.request("POST", "/v1/workflows/block/runs", `{"input": {"name": "`+strings.Repeat("x", 4000)+`"}}`)
	}
	if r.status != http.StatusInsufficientStorage || r.header.Get("Retry-After") == "" || !strings.Contains(r.text, "no space left on device") || strings.Contains(r.text, disk.Dir) {
		t.Errorf("full disk: %s", r)
	}
	s.awaitReady(http.StatusServiceUnavailable)
	s.kill()
	s = p.serve("-c", disk.Dir)
	if r := s.awaitReady(http.StatusServiceUnavailable); !strings.Contains(r.text, "no space left") {
		t.Errorf("ready after a restart: %s", r)
	}
	disk.Free(t)
	s.awaitReady(http.StatusOK)
	open(t, gate)
	if status := s.status(id); status != "done" {
		t.Errorf("run: %s\n%s", status, s.log)
	}
	if r := s.run("greet", `{"name": "x"}`); r["status"] != "done" {
		t.Errorf("new run: %v", r)
	}
}

func TestServerWhoseDirectoryWasMovedRefusesWork(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	runs := filepath.Join(t.TempDir(), "runs")
	s := p.serve("-c", runs)
	s.run("greet", `{"name": "x"}`)
	if err := os.Remove(filepath.Join(runs, "serve", "state.jsonl")); err != nil {
		t.Fatal(err)
	}
	s.run("greet", `{"name": "y"}`) // and the file is back
	if err := os.Rename(runs, runs+".away"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r := s.request("POST", "/v1/workflows/greet/runs", `{"input": {"name": "z"}}`); r.status != http.StatusServiceUnavailable || !strings.Contains(r.text, "moved") {
			t.Errorf("moved: %s", r)
		}
		if r := s.request("GET", "/v1/runs", ""); r.status != http.StatusServiceUnavailable || !strings.Contains(r.text, "moved") {
			t.Errorf("list: %s", r)
		}
		s.awaitReady(http.StatusServiceUnavailable)
		if err := os.MkdirAll(filepath.Join(runs, "serve"), 0o700); err != nil { // another one in its place
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(runs); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(runs+".away", runs); err != nil {
		t.Fatal(err)
	}
	s.awaitReady(http.StatusOK)
	if err := os.Rename(p.dir, p.dir+".away"); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitReady(http.StatusServiceUnavailable); !strings.Contains(r.text, "the directory of the workflows cannot be read") {
		t.Errorf("without workflows: %s", r)
	}
	if err := os.Rename(p.dir+".away", p.dir); err != nil {
		t.Fatal(err)
	}
}

// A file that appears while the disk is full is processed when there is room.
func TestFileWaitsForADiskThatIsFull(t *testing.T) {
	t.Parallel()
	disk := smalldisktest.New(t, "2m")
	p := newProject(t, map[string]string{"greet.yaml": greet, "files.yaml": "nodes: [{name: n}]\nserve: {triggers: [{watch: inbox}]}\n"})
	inbox := filepath.Join(p.dir, "inbox")
	if err := os.Mkdir(inbox, 0o700); err != nil {
		t.Fatal(err)
	}
	s := p.serve("-c", disk.Dir)
	disk.Fill(t, 0)
	for r := (response{}); r.status < 300; {
		r = s.request("POST", "/v1/workflows/greet/runs", `{"input": {"name": "`+strings.Repeat("x", 4000)+`"}}`)
	}
	if err := os.WriteFile(filepath.Join(inbox, "a"), []byte(strings.Repeat("a", 10)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.log.await(t, "of files starts no run")
	disk.Free(t)
	s.log.await(t, "of files: done")
}

// Runs that wait for a disk that is full do not all try again and again.
func TestQueueWaitsForADiskThatIsFull(t *testing.T) {
	t.Parallel()
	disk := smalldisktest.New(t, "2m")
	p := newProject(t, map[string]string{"greet.yaml": greet + "serve: {max_running: 3, retry: {max_retries: 1}}\n"})
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate))
	s := p.serve("-c", disk.Dir, "--max-running", "3", "-vv")
	for range 3 {
		s.started()
	}
	for range 50 {
		s.request("POST", "/v1/workflows/greet/runs", `{"input": {"name": "x"}}`)
	}
	disk.Fill(t, 0)
	open(t, gate)
	for strings.Count(s.log.String(), "could not start") < 6 {
		<-s.log.More()
	}
	if r := s.awaitReady(http.StatusServiceUnavailable); !strings.Contains(r.text, "no space left on device") {
		t.Errorf("ready: %s", r)
	}
	if r := s.request("GET", "/v1/workflows/greet", ""); r.body["queued"].(float64) < 40 {
		t.Errorf("workflow: %s", r)
	}
	if got := s.statuses("greet")["queued"]; got < 40 {
		t.Errorf("%d runs are queued", got)
	}
	disk.Free(t)
	s.awaitStatuses("greet", map[string]int{"done": 50})
	log := s.log.String()
	if n := strings.Count(log, "could not start"); n > 10 {
		t.Errorf("%d attempts", n)
	}
	for _, text := range []string{"the disk is full: runs wait until space is freed", "the disk has free space again"} {
		if n := strings.Count(log, text); n != 1 {
			t.Errorf("%d messages %q", n, text)
		}
	}
	if strings.Contains(s.request("GET", "/metrics", "").text, `status="failed"`) {
		t.Error("runs that wait count as failed")
	}
	s.awaitReady(http.StatusOK)
}
