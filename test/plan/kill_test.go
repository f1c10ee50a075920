//go:build linux

package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/test/teaproc"
)

// bin holds tea and the plugins.
var bin string

func TestMain(m *testing.M) {
	teaproc.Main(m, func(dir string) { bin = dir }, "cmd/tea", "plugins/plan/cmd/tea-plugin-plan", "plugins/llm/cmd/tea-plugin-llm")
}

// kills is the number of kills.
func kills(t *testing.T) int { return teaproc.Kills(t, 20) }

// server executes subtasks. It remembers the idempotency keys of each.
type server struct {
	*httptest.Server
	mu   sync.Mutex
	keys map[string][]string
	ends map[string]bool // subtasks whose end was reported
	bad  []string
}

// newServer starts a server that takes random times, with its own source.
func newServer(t *testing.T, r *rand.Rand) *server {
	s := &server{keys: map[string][]string{}, ends: map[string]bool{}}
	var mu sync.Mutex
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var task struct {
			ID    string         `json:"id"`
			Needs []string       `json:"needs"`
			Seen  map[string]any `json:"seen"`
		}
		if err := json.NewDecoder(req.Body).Decode(&task); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.began(task.ID, task.Needs, task.Seen, req.Header.Get("Idempotency-Key"))
		mu.Lock()
		wait := time.Duration(r.Int64N(int64(4 * time.Millisecond)))
		mu.Unlock()
		select { // a subtask that takes time is killed in the middle of it
		case <-time.After(wait):
		case <-req.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"did": %q}`, task.ID)
	}))
	t.Cleanup(s.Close)
	return s
}

// began records the begin of a subtask.
func (s *server) began(id string, needs []string, seen map[string]any, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fault := func(format string, args ...any) { s.bad = append(s.bad, fmt.Sprintf(format, args...)) }
	if s.ends[id] {
		fault("%s was executed again after its end was reported", id)
	}
	for _, d := range needs {
		if seen[d] != "did "+d {
			fault("%s does not see the result of %s: %v", id, d, seen)
		}
		// What another one builds on is finished: from here on it must not run.
		s.ends[d] = true
	}
	if earlier := s.keys[id]; len(earlier) > 0 && earlier[0] != key {
		fault("%s was executed with the idempotency keys %s and %s", id, earlier[0], key)
	}
	s.keys[id] = append(s.keys[id], key)
}

func (s *server) ended(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[id] = true
}

// check reports the faults, and returns how many executions were repeated.
func (s *server) check(t *testing.T, subtasks int) (repeated int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fault := range s.bad {
		t.Error(fault)
	}
	if len(s.keys) != subtasks {
		t.Errorf("%d subtasks were executed, want %d", len(s.keys), subtasks)
	}
	seen := map[string]string{}
	for id, keys := range s.keys {
		if other, taken := seen[keys[0]]; taken {
			t.Errorf("%s and %s have the same idempotency key", id, other)
		}
		seen[keys[0]] = id
		repeated += len(keys) - 1
	}
	return repeated
}

// victim is a run that is killed and resumed until it is done.
type victim struct {
	dir, run string
	server   *server
	subtasks int
}

const concurrent = 4

// newVictim writes a workflow with a random plan.
func newVictim(t *testing.T, r *rand.Rand) *victim {
	t.Helper()
	v := &victim{dir: t.TempDir(), server: newServer(t, rand.New(rand.NewPCG(r.Uint64(), 0))), subtasks: 5 + r.IntN(196)}
	list := make([]any, v.subtasks)
	for i := range list {
		needs := []string{}
		for range r.IntN(3) {
			if i > 0 {
				needs = append(needs, fmt.Sprint("s", r.IntN(i)))
			}
		}
		list[i] = map[string]any{"id": fmt.Sprint("s", i), "description": "do it", "dependencies": needs}
	}
	flow := map[string]any{"name": "plan", "nodes": []any{map[string]any{
		"name": "go", "uses": "plan.execute", "output": "done",
		"with": map[string]any{
			"plan": map[string]any{"goal": "test", "subtasks": list}, "max_concurrent": concurrent,
			"subtask_executor": map[string]any{
				"action": "http.post",
				"with":   map[string]any{"url": v.server.URL, "json": map[string]any{"id": "{{ subtask.id }}", "needs": "{{ subtask.dependencies }}", "seen": "{{ results }}"}},
				"output": "did {{ result.body.did }}",
			},
		},
	}}}
	raw, err := json.Marshal(flow)
	if err == nil {
		err = os.WriteFile(filepath.Join(v.dir, "flow.yaml"), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var errKilled = errors.New("killed")

// start runs or resumes, and kills the host, or its plugin, after a while unless
// that is 0. A run whose plugin was killed can fail.
func (v *victim) start(t *testing.T, after time.Duration, plugin bool) error {
	t.Helper()
	args := []string{"run", filepath.Join(v.dir, "flow.yaml")}
	if v.run != "" {
		args = []string{"resume", v.run}
	}
	args = append(args, "--plugins", bin, "-c", filepath.Join(v.dir, "runs"), "-o", filepath.Join(v.dir, "state.json"))
	p := teaproc.Process{Program: filepath.Join(bin, "tea"), Args: args, Saw: v.saw}
	if after > 0 {
		kill := teaproc.Kill
		if plugin {
			kill = killPlugin
		}
		p.Kill = teaproc.After(after, kill)
	}
	end := p.Run(t)
	switch {
	case end.Killed() || plugin && end.Code != 0 && strings.Contains(end.Stderr, "plugin_crashed"):
		return errKilled
	case end.Code != 0:
		t.Fatalf("tea %s: exit code %d\n%s", strings.Join(args, " "), end.Code, end.Stderr)
	}
	return nil
}

// killPlugin kills the plugin of a host.
func killPlugin(host *os.Process) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", host.Pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for _, child := range strings.Fields(string(children)) {
			name, _ := os.ReadFile("/proc/" + child + "/comm")
			if pid, err := strconv.Atoi(child); err == nil && strings.HasPrefix(string(name), "tea-plugin-plan") {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it can be gone
			}
		}
	}
}

func (v *victim) saw(e teaproc.Event) {
	switch id, isSubtask := strings.CutPrefix(e.Path, "go!"); {
	case e.Event == "run_start":
		v.run = e.RunID
	case e.Event == "node_end" && isSubtask:
		v.server.ended(id)
	}
}

// TestKillAndResume kills hosts and plugins while plans of 5 to 200 subtasks run
// under sync durability. What has ended is never executed again, what was
// interrupted is, with the same idempotency key.
func TestKillAndResume(t *testing.T) {
	t.Parallel()
	undisturbed := newVictim(t, rand.New(rand.NewPCG(0, 0)))
	began := time.Now()
	if err := undisturbed.start(t, 0, false); err != nil {
		t.Fatal(err)
	}
	each := time.Since(began) / time.Duration(undisturbed.subtasks)
	undisturbed.wantDone(t)
	if n := undisturbed.server.check(t, undisturbed.subtasks); n > 0 {
		t.Errorf("%d executions were repeated without a kill", n)
	}
	killed, repeated, runs := 0, 0, 0
	for seed := uint64(1); killed < kills(t) && !t.Failed(); seed++ {
		if runs++; runs > 20*kills(t) {
			t.Fatalf("only %d of %d runs could be killed", killed, runs)
		}
		r := rand.New(rand.NewPCG(seed, 0))
		v := newVictim(t, r)
		here := 0
		took := each * time.Duration(v.subtasks)
		for done := false; !done; {
			after := 20*time.Millisecond + time.Duration(r.Int64N(int64(took)))
			if here > 5 {
				after = 0
			}
			if done = v.start(t, after, r.IntN(4) == 0) == nil; !done {
				here++
			}
		}
		v.wantDone(t)
		again := v.server.check(t, v.subtasks)
		if again > 2*concurrent*max(here, 1) {
			t.Errorf("seed %d: %d executions were repeated after %d kills", seed, again, here)
		}
		killed, repeated = killed+here, repeated+again
	}
	t.Logf("%d kills in %d runs, %d interrupted subtasks were executed again", killed, runs, repeated)
}

// wantDone checks the final state.
func (v *victim) wantDone(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(v.dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Done struct {
			Success bool              `json:"success"`
			Results map[string]string `json:"subtask_results"`
		} `json:"done"`
	}
	if err := json.Unmarshal(raw, &state); err != nil {
		t.Fatal(err)
	}
	if !state.Done.Success || len(state.Done.Results) != v.subtasks {
		t.Errorf("success %v with %d results of %d", state.Done.Success, len(state.Done.Results), v.subtasks)
	}
	for id, result := range state.Done.Results {
		if result != "did "+id {
			t.Errorf("%s: %q", id, result)
		}
	}
}
