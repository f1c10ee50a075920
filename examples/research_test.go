package examples

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/examples/internal/offline"
	"github.com/the-edge-agent/tea/test/teaproc"
)

// world is what the agent of the example research reaches: the pages, the search
// engine and the model. It counts what it is asked for.
type world struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
	holds map[string]chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{asked: map[string]int{}, holds: map[string]chan struct{}{}}
	handler, err := offline.Handler("research", func(ctx context.Context, to string) { w.note(ctx, "model: "+to) })
	if err != nil {
		t.Fatal(err)
	}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			w.note(r.Context(), "page: "+r.URL.Path)
		}
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

// note counts a request. A request that is held waits until its client has gone.
func (w *world) note(ctx context.Context, request string) {
	w.mu.Lock()
	w.asked[request]++
	held := w.holds[request]
	delete(w.holds, request)
	w.mu.Unlock()
	if held != nil {
		close(held)
		<-ctx.Done()
	}
}

// hold holds the next such request, and returns a channel that is closed when it
// has arrived.
func (w *world) hold(request string) <-chan struct{} {
	arrived := make(chan struct{})
	w.mu.Lock()
	w.holds[request] = arrived
	w.mu.Unlock()
	return arrived
}

func (w *world) requests() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.asked)
}

// here is the address of the world in the files of the example.
const here = "http://127.0.0.1:8000"

// research returns a copy of the example in which each text is replaced.
func research(t *testing.T, replaced ...string) (dir string) {
	t.Helper()
	dir = copyExample(t, "research")
	file := filepath.Join(dir, "workflow.yaml")
	for i := 0; i < len(replaced); i += 2 {
		replaceIn(t, file, replaced[i], replaced[i+1])
	}
	return dir
}

func replaceIn(t *testing.T, file, old, by string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s does not contain %q:\n%s", file, old, text)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, by)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestResearch runs the README with the program that needs no network.
func TestResearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := research(t, here, w.URL)
	runPage(t, "research/README.md", dir)
	replaceIn(t, filepath.Join(dir, "report.md"), w.URL, here)
	compareGolden(t, "research", dir)
	for request, n := range w.requests() {
		if n != 1 {
			t.Errorf("%s: %d times", request, n)
		}
	}
}

// TestResearchIsKilledTwice runs the agent with a real search service and a real
// MCP server, and kills it inside a plan and inside a conversation with tools.
// Only what was running is done again, and the report is that of a run that was
// not disturbed.
func TestResearchIsKilledTwice(t *testing.T) {
	t.Parallel()
	server := filesServer(t)
	w := newWorld(t)
	searx := startSearx(t, w.URL+"/search?q={query}&page={pageno}")
	calls := filepath.Join(t.TempDir(), "calls.jsonl")
	command, err := json.Marshal([]string{"-c", `tee -a "$0" | "$@"`, calls, server, "documents"})
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{home: t.TempDir(), dir: research(t,
		"${SEARCH_URL:-"+here+"}", searx, here, w.URL,
		"command: tea", "command: sh", "args: [mcp, tools]", "args: "+string(command))}
	if got, err := shell(t.Context(), a.dir, a.home, "tea plugin refresh mcp --workflow workflow.yaml"); err != nil || got.code != 0 {
		t.Fatalf("%v\n%s%s", err, got.stdout, got.stderr)
	}

	// Inside the plan: one subtask has finished, another one waits for the model.
	a.start(t, "run", w.hold("model: Step: Find the prices"), a.after("node_end", "execute!pumps"))
	// Inside a conversation: a tool has returned its result, another one runs.
	a.start(t, "resume", w.hold("page: /bearings/grease.html"))
	if code := a.start(t, "resume"); code != 130 {
		t.Fatalf("exit code %d without an answer\n%s", code, a.stderr)
	}
	if code := a.start(t, "resume --answer ask:ask=\"buyer\""); code != 0 {
		t.Fatalf("exit code %d\n%s", code, a.stderr)
	}

	replaceIn(t, filepath.Join(a.dir, "report.md"), w.URL, here)
	compareGolden(t, "research", a.dir)
	want := map[string]int{
		"page: /search": 1, "page: /bearings/steel.html": 1, "page: /bearings/hybrid.html": 1, "page: /bearings/removed.html": 1,
		"model: Goal: Which bearings should the pumps of hall 2 get": 1,
		"model: Step: Find out what the pumps of hall 2 demand":      1,
		"model: P-21,2,7800":                   1,
		"model: Step: Find the prices":         2, // killed
		"page: /prices.html":                   1,
		"model: # Prices of bearings":          1,
		"model: Step: Compare the cost":        1,
		"model: Rules for changes of bearings": 1,
		"page: /bearings/grease.html":          2, // killed
		"model: # Grease for hybrid bearings":  1,
		"model: Report for the buyer":          1,
	}
	if diff := cmp.Diff(want, w.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pumps.csv", "rules.txt"}, toolCalls(t, calls)); diff != "" {
		t.Errorf("calls of the MCP server (-want +got):\n%s", diff)
	}
}

// agent is a run of the example. Its methods are for one goroutine.
type agent struct {
	dir, home string
	stderr    string
	awaited   map[string]chan struct{}
}

// after returns a channel that is closed when the run emits an event of a path.
func (a *agent) after(event, path string) <-chan struct{} {
	c := make(chan struct{})
	a.awaited = map[string]chan struct{}{event + " " + path: c}
	return c
}

// start runs or resumes and returns the exit code. Given signals, it kills tea as
// soon as it has got all of them.
func (a *agent) start(t *testing.T, command string, signals ...<-chan struct{}) (code int) {
	t.Helper()
	words := strings.Fields(command)
	p := teaproc.Process{
		Program: filepath.Join(bin, "tea"), Args: append([]string{words[0], "workflow.yaml", "-c", "runs", "-o", "state.json"}, words[1:]...),
		Dir: a.dir, Env: environment(a.home), Saw: a.saw,
	}
	if len(signals) > 0 {
		p.Kill = func(ctx context.Context, process *os.Process) {
			for _, s := range signals {
				select {
				case <-s:
				case <-ctx.Done():
					return
				}
			}
			teaproc.Kill(process)
		}
	}
	end := p.Run(t)
	if end.Killed() != (len(signals) > 0) {
		t.Fatalf("tea %s ended with %d\n%s", command, end.Code, end.Stderr)
	}
	a.stderr = end.Stderr
	return end.Code
}

func (a *agent) saw(e teaproc.Event) {
	key := e.Event + " " + e.Path
	if c := a.awaited[key]; c != nil {
		close(c)
		delete(a.awaited, key)
	}
}

// toolCalls returns the paths in the calls that a server has got.
func toolCalls(t *testing.T, file string) (paths []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var message struct {
			Method string
			Params struct {
				Arguments struct{ Path string }
			}
		}
		if err := json.Unmarshal([]byte(line), &message); err != nil {
			t.Fatalf("message %q: %v", line, err)
		}
		if message.Method == "tools/call" {
			paths = append(paths, message.Params.Arguments.Path)
		}
	}
	return paths
}

// missing skips a test that needs something to be installed; in CI it fails.
func missing(t *testing.T, remedy string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(remedy)
	}
	t.Skip(remedy)
}

// filesServer returns the program of the reference server for files.
func filesServer(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../scripts/mcp-peers", "path").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(dir, "complete")); err != nil {
		missing(t, fmt.Sprintf("the MCP servers are not installed: %v; run scripts/mcp-peers install", err))
	}
	return filepath.Join(dir, "node_modules/.bin/mcp-server-filesystem")
}

// startSearx runs the real searx with one engine, which asks the given address.
func startSearx(t *testing.T, engine string) (address string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../scripts/searx", "serve", engine)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line == "" {
		err := cmd.Wait()
		if cmd.ProcessState.ExitCode() == 3 {
			missing(t, stderr.String())
		}
		t.Fatalf("searx did not start: %v\n%s", err, stderr.String())
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended it
	return strings.TrimSpace(line)
}
