package main

import (
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// spender is a workflow whose first run uses up the budget of the day.
const spender = `
nodes: [{name: n, run: 'return {}'}]
serve: {budget_per_day: {tokens: 5}}
`

// spend writes to the state of a server that is off that a workflow has used up
// its budget of today.
func (p *project) spend(workflow, day string, tokens int) {
	p.t.Helper()
	p.record(`[{"used":{"day":"` + day + `","workflow":"` + workflow + `","tokens":` + strconv.Itoa(tokens) + `,"usd":0}}]`)
}

// record adds a line to the state of a server that is off.
func (p *project) record(text string) {
	p.t.Helper()
	path := filepath.Join(p.home, "tea", "runs", "serve", "state.jsonl")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(stateLine(text))
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// stateLine returns a line of the state of the server.
func stateLine(text string) string {
	return fmt.Sprintf("%08x %s\n", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)), text)
}

func today() string { return time.Now().Format(time.DateOnly) }

func TestBudgetOfTheDay(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"spender.yaml": spender, "other.yaml": "nodes: [{name: n}]\nserve: {budget_per_day: {usd: 1}}\n"})
	s := p.serve()
	s.run("spender", "{}")
	s.interrupt()
	p.spend("spender", today(), 7)
	s = p.serve()
	r := s.request("POST", "/v1/workflows/spender/runs", "{}")
	id := r.body["id"].(string)
	if r := s.request("GET", "/v1/runs/"+id, ""); r.body["status"] != "queued" || r.body["queued_because"] != "the workflow has used its daily budget" {
		t.Errorf("run: %s", r)
	}
	for _, stream := range []string{"", `, "stream": true`} {
		r := s.request("POST", "/v1/chat/completions", `{"model": "spender", "messages": [{"role": "user", "content": "Hi"}]`+stream+`}`)
		if r.status != http.StatusTooManyRequests || !strings.Contains(r.text, "daily budget") {
			t.Errorf("chat: %s", r)
		}
	}
	if run := s.run("other", "{}"); run["status"] != "done" {
		t.Errorf("other workflow: %v", run)
	}
	if r := s.request("GET", "/v1/workflows/spender", ""); r.body["tokens_today"] != 7.0 || r.body["queued"] != 1.0 {
		t.Errorf("workflow: %s", r)
	}
	s.kill()
	p.spend("spender", "2020-01-01", 7) // the budget of another day
	p.spend("spender", today(), 4)
	s = p.serve()
	if status := s.status(id); status != "done" {
		t.Errorf("run on the next day: %s", status)
	}
}
