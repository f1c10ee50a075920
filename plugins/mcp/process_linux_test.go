package mcp_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/mcp"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/proctest"
)

// A descriptor that tea has inherited from its own parent is not passed on.
func TestNoInheritedDescriptors(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDWR, 0o600) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	c := open(t, with(testServer("good")))
	if open, _ := c.must(t, "mcp.s_files", nil)["text"].(string); strings.Contains(open, path) || open == "" {
		t.Errorf("open descriptors:\n%s", open)
	}
}

// children starts two children of the server and returns their numbers.
func children(t *testing.T, c *client) []int {
	t.Helper()
	text, _ := c.must(t, "mcp.s_children", nil)["text"].(string)
	var pids []int
	for field := range strings.FieldsSeq(text) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 2 {
		t.Fatalf("children: %q", text)
	}
	return pids
}

// waitEnded waits until processes have ended.
func waitEnded(t *testing.T, pids ...int) {
	t.Helper()
	if left := proctest.Await(120*time.Second, pids...); len(left) > 0 {
		t.Fatalf("the processes %v still run", left)
	}
}

func TestNoProcessSurvivesClose(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("good")))
	pids := children(t, c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	waitEnded(t, pids...)
}

// The servers of a process that is killed end too, with the children that have
// left their process group.
func TestNoProcessSurvivesAKilledOwner(t *testing.T) {
	t.Parallel()
	if len(os.Getenv("MCP_TEST_OWNER")) > 0 {
		c := open(t, with(testServer("good")))
		pids := children(t, c)
		fmt.Println("children", pids[0], pids[1])
		select {} // until it is killed
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestNoProcessSurvivesAKilledOwner$", "-test.v")
	cmd.Env = append(os.Environ(), "MCP_TEST_OWNER=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var a, b int
	var text []byte
	buf := make([]byte, 4096)
	for a == 0 || b == 0 {
		n, err := out.Read(buf)
		if err != nil {
			t.Fatalf("the owner printed %s and ended: %v", text, err)
		}
		text = append(text, buf[:n]...)
		if _, after, found := strings.Cut(string(text), "children "); found && strings.Contains(after, "\n") {
			if _, err := fmt.Sscan(after, &a, &b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	waitEnded(t, a, b)
}

// The same when the plugin is a separate process.
func TestNoProcessSurvivesAKilledPlugin(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEA_PLUGIN_COOKIE") != "" {
		serve.Main(mcp.Bundle())
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestNoProcessSurvivesAKilledPlugin$")
	p, err := teatest.Start(t.Context(), cmd, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	inst, err := p.Open(t.Context(), rawSettings(t, with(testServer("good"))))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := inst.Invoke(t.Context(), &tea.Request{Action: "mcp.s_children", Params: tea.ValuePayload(map[string]any{}), Host: &teatest.Host{}, Call: tea.Call{Attempt: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Text string `json:"text"`
	}
	if err := resp.Result.Decode(&result); err != nil {
		t.Fatal(err)
	}
	var a, b int
	if _, err := fmt.Sscan(result.Text, &a, &b); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitEnded(t, a, b)
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	// dd has one buffer, of the size bs. Its input and output stay open and it does not
	// answer, so that only the limit ends it.
	c := open(t, with(map[string]any{"command": "sh", "args": []any{"-c", "exec 3<&0 4>&1; exec dd bs=150M if=/dev/zero of=/dev/null"}}, "memory_mb", 100))
	_, err := c.call(t.Context(), "mcp.s_eat", nil)
	refused(t, err, tea.ConnectionError, "its limit is 100 MiB (memory_mb)")
}

func TestProcessorLimit(t *testing.T) {
	t.Parallel()
	// The server reports on its standard error which processors it can use.
	script := `read line; grep Cpus_allowed_list /proc/self/status >&2; exit 7`
	c := open(t, with(map[string]any{"command": "sh", "args": []any{"-c", script}}, "cpu", 1))
	_, err := c.call(t.Context(), "mcp.s_echo", nil)
	refused(t, err, tea.ConnectionError, "Cpus_allowed_list:")
	if one := regexp.MustCompile(`Cpus_allowed_list:\s*\d+(\D*$|[^\d,-])`); !one.MatchString(err.Error()) {
		t.Errorf("it can use several processors: %v", err)
	}
}

func TestNothingIsLeft(t *testing.T) { //nolint:paralleltest // it counts goroutines
	c := open(t, with(testServer("good")))
	before := goleak.IgnoreCurrent()
	c.must(t, "mcp.s_add", map[string]any{"a": 1})
	_, err := c.call(t.Context(), "mcp.s_exit", nil)
	refused(t, err, tea.ConnectionError)
	c.must(t, "mcp.s_add", map[string]any{"a": 1})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}
