//go:build linux

package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/test/teaproc"
)

// bin holds tea and the plugins.
var bin string

func TestMain(m *testing.M) {
	teaproc.Main(m, func(dir string) { bin = dir }, "cmd/tea", "plugins/llm/cmd/tea-plugin-llm", "plugins/memory/cmd/tea-plugin-memory")
}

// call is a call of a tool in an answer of the model.
type call struct {
	Name      string
	Arguments any
}

// server is a model and the server of a tool. It remembers what each conversation has
// seen: what is part of a request is recorded in the run, and must not be made again.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests map[string]int    // by conversation and round
	rounds   map[string]int    // the last round of each conversation
	posts    map[string]int    // by id
	keys     map[string]string // idempotency keys by id
	seen     map[string]bool   // the ids whose results the model has seen
	faults   []string
}

func newServer(t *testing.T) *server {
	s := &server{requests: map[string]int{}, rounds: map[string]int{}, posts: map[string]int{}, keys: map[string]string{}, seen: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/chat/completions", s.model)
	mux.HandleFunc("/post", s.post)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *server) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// model answers by the agent, its task and the number of answers in the conversation.
func (s *server) model(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	system, round, task := "", 0, ""
	s.mu.Lock()
	for _, m := range req.Messages {
		switch m.Role {
		case "system":
			system = m.Content
		case "user":
			task = m.Content
		case "assistant":
			round++
		case "tool":
			var result struct{ Body struct{ Did string } }
			if json.Unmarshal([]byte(m.Content), &result) == nil && result.Body.Did != "" {
				s.seen[result.Body.Did] = true
			}
		}
	}
	s.requests[fmt.Sprint(task, " ", round)]++
	if last := s.rounds[task]; round < last {
		s.fault("%s: round %d was asked after round %d", task, round, last)
	}
	s.rounds[task] = max(s.rounds[task], round)
	s.mu.Unlock()
	text, calls := s.answer(system, task, round)
	list := []any{}
	for i, c := range calls {
		arguments, _ := json.Marshal(c.Arguments)
		list = append(list, map[string]any{"id": fmt.Sprintf("c%d-%d", round, i), "type": "function", "function": map[string]any{"name": c.Name, "arguments": string(arguments)}})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"model": "m", "choices": []any{map[string]any{"message": map[string]any{"content": text, "tool_calls": list}, "finish_reason": "stop"}}})
}

func (s *server) answer(system, task string, round int) (text string, calls []call) {
	post := func(n int) call {
		return call{"http_post", map[string]any{"url": s.URL + "/post", "json": map[string]any{"id": fmt.Sprintf("%s-%d-%d", task, round, n)}}}
	}
	switch {
	case system == "writer" && round == 4:
		return "", []call{post(0), post(1)}
	case system == "writer":
		return "written", nil
	case system == "researcher" && round < 3:
		return "", []call{post(0), post(1)}
	case system == "researcher":
		return "found " + task, nil
	}
	return "", [][]call{
		{{"todo_write", map[string]any{"items": []any{map[string]any{"task": "research", "status": "active"}}}}, post(0)},
		{{"delegate_researcher", map[string]any{"task": "a"}}, {"delegate_researcher", map[string]any{"task": "b"}}},
		{post(0)},
		{{"hand_off_writer", map[string]any{"reason": "write"}}},
	}[round]
}

func (s *server) post(w http.ResponseWriter, r *http.Request) {
	var task struct{ ID string }
	if err := json.NewDecoder(r.Body).Decode(&task); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	if s.seen[task.ID] {
		s.fault("%s was posted again after the model had seen its result", task.ID)
	}
	if earlier := s.keys[task.ID]; earlier != "" && earlier != key {
		s.fault("%s was posted with the keys %s and %s", task.ID, earlier, key)
	}
	s.keys[task.ID] = key
	s.posts[task.ID]++
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"did": %q}`, task.ID)
}

// check reports the faults and returns the number of repeated requests and calls.
func (s *server) check(t *testing.T) (repeated int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fault := range s.faults {
		t.Error(fault)
	}
	if len(s.requests) != 14 || len(s.posts) != 16 {
		t.Errorf("%d requests and %d calls: %v", len(s.requests), len(s.posts), slices.Sorted(maps.Keys(s.posts)))
	}
	for _, counts := range []map[string]int{s.requests, s.posts} {
		for _, n := range counts {
			repeated += n - 1
		}
	}
	return repeated
}

const workflow = `
settings:
  llm:
    model: m
    api_base: URL/v1
    agents:
      lead: {instructions: lead, tools: [http.post], agents: [researcher], hand_off: [writer], todo: true}
      researcher: {instructions: researcher, tools: [http.post]}
      writer: {instructions: writer, tools: [http.post]}
nodes:
  - name: go
    uses: agent.run
    with: {agent: lead, prompt: task}
    output: {text: "{{ result.content }}", agent: "{{ result.agent }}", todo: "{{ result.todo }}", rounds: "{{ result.rounds }}"}
`

// victim is a run that is killed and resumed until it is done.
type victim struct {
	dir, run string
	server   *server
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{dir: t.TempDir(), server: newServer(t)}
	text := strings.ReplaceAll(workflow, "URL", v.server.URL)
	if err := os.WriteFile(filepath.Join(v.dir, "flow.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return v
}

// start runs or resumes, and kills the host after a while unless that is 0. It reports
// whether the run is done.
func (v *victim) start(t *testing.T, after time.Duration) bool {
	t.Helper()
	args := []string{"run", filepath.Join(v.dir, "flow.yaml")}
	if v.run != "" {
		args = []string{"resume", v.run}
	}
	args = append(args, "--plugins", bin, "-c", filepath.Join(v.dir, "runs"), "-o", filepath.Join(v.dir, "state.json"))
	p := teaproc.Process{Program: filepath.Join(bin, "tea"), Args: args, Saw: func(e teaproc.Event) {
		if e.Event == "run_start" {
			v.run = e.RunID
		}
	}}
	if after > 0 {
		p.Kill = teaproc.After(after, teaproc.Kill)
	}
	end := p.Run(t)
	if !end.Killed() && end.Code != 0 {
		t.Fatalf("tea %s: exit code %d\n%s", strings.Join(args, " "), end.Code, end.Stderr)
	}
	return !end.Killed()
}

func (v *victim) wantDone(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(v.dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]any
	if err := json.Unmarshal(raw, &state); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"text": "written", "agent": "writer", "rounds": 5.0, "todo": []any{map[string]any{"task": "research", "status": "active"}}}
	if diff := cmp.Diff(want, state); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

// TestKillAndResume kills hosts while a team works: an agent that delegates two tasks at
// once and then hands off. A resumed run makes again only what was under way, which is
// at most one request or the two calls of a round in each conversation.
func TestKillAndResume(t *testing.T) {
	t.Parallel()
	undisturbed := newVictim(t)
	began := time.Now()
	if !undisturbed.start(t, 0) {
		t.Fatal("not done")
	}
	took := time.Since(began)
	undisturbed.wantDone(t)
	if n := undisturbed.server.check(t); n > 0 {
		t.Errorf("%d requests and calls were repeated without a kill", n)
	}
	want, killed, repeated, runs := teaproc.Kills(t, 20), 0, 0, 0
	for seed := uint64(1); killed < want && !t.Failed(); seed++ {
		if runs++; runs > 20*want {
			t.Fatalf("only %d of %d runs could be killed", killed, runs)
		}
		r := rand.New(rand.NewPCG(seed, 0))
		v := newVictim(t)
		here := 0
		for {
			after := time.Duration(r.Int64N(int64(took)))
			if here > 5 {
				after = 0
			}
			if v.start(t, after) {
				break
			}
			here++
		}
		v.wantDone(t)
		again := v.server.check(t)
		if again > 4*here {
			t.Errorf("seed %d: %d requests and calls were repeated after %d kills", seed, again, here)
		}
		killed, repeated = killed+here, repeated+again
	}
	t.Logf("%d kills in %d runs, %d interrupted requests and calls were made again", killed, runs, repeated)
}
