package examples

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestACrashOfTheGraphsEngine ends the plugin with the signal of an invalid access
// while a native engine answers a query: the run fails with plugin_crashed, and
// the next one finds what was stored.
func TestACrashOfTheGraphsEngine(t *testing.T) {
	t.Parallel()
	const workflow = `
settings: {graph: {path: ./graph, backend: %s}}
nodes:
  - {name: store, uses: graph.store_entity, with: {entity_id: pump, text: kept}}
  - {name: slow, uses: graph.query, with: {timeout_seconds: 300, %s}}
`
	const ask = `
settings: {graph: {path: ./graph}}
nodes:
  - {name: get, uses: graph.get_entity, with: {entity_id: pump}, output: {text: "{{ result.entity.text }}"}}
`
	for backend, query := range map[string]string{
		"cypher": `cypher: "UNWIND range(1, 10000) AS i UNWIND range(1, 10000) AS k UNWIND range(1, 10000) AS m WITH i + k + m AS n WHERE n = 0 RETURN n"`,
		"cozo":   `datalog: "a[x] := x in int_range(100000)\n?[count(x)] := a[x], a[y], x * y == -1"`,
	} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			library := ""
			if backend == "cypher" {
				library = kuzu(t)
			} else {
				needCozo(t)
			}
			dir, home := t.TempDir(), t.TempDir()
			for name, text := range map[string]string{"slow.yaml": fmt.Sprintf(workflow, backend, query), "ask.yaml": ask} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "tea"), "run", "slow.yaml", "-s")
			cmd.Dir, cmd.Env = dir, append(environment(home), library)
			last := crashDuring(t, cmd, "slow")
			if last["event"] != "run_end" || last["error_type"] != "plugin_crashed" {
				t.Errorf("the run ended with %v", last)
			}
			got, err := shell(t.Context(), dir, home, library+" tea run ask.yaml -q")
			if err != nil || got.code != 0 || !strings.Contains(got.stdout, "kept") {
				t.Errorf("the next run: exit code %d, %v\n%s%s", got.code, err, got.stdout, got.stderr)
			}
		})
	}
}

// crashDuring runs a workflow, crashes its plugins when a node has started, and
// returns the last event.
func crashDuring(t *testing.T, cmd *exec.Cmd, node string) (last map[string]any) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	crash := func() {
		// The node can start a little before the call reaches the plugin.
		for again := time.NewTicker(20 * time.Millisecond); ; {
			for _, plugin := range children(cmd.Process.Pid) {
				_ = syscall.Kill(plugin, syscall.SIGSEGV)
			}
			select {
			case <-again.C:
			case <-ended:
				again.Stop()
				return
			}
		}
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		last = nil
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			t.Fatal(err)
		}
		if last["event"] == "node_start" && last["node"] == node {
			go crash()
		}
	}
	close(ended)
	if cmd.Wait() == nil {
		t.Error("the run succeeded")
	}
	return last
}

// children returns the processes that a process has started.
func children(pid int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}
