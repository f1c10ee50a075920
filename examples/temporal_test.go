package examples

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTemporal runs the example temporal: three workers, of which one has the
// plugin of the memory.
func TestTemporal(t *testing.T) {
	t.Parallel()
	address := startTemporal(t)
	// The plugin is where only one worker looks.
	programs, plugins, dir := t.TempDir(), t.TempDir(), copyExample(t, "temporal")
	for name, to := range map[string]string{"tea-temporal": programs, "tea-plugin-memory": plugins} {
		if err := os.Link(filepath.Join(bin, name), filepath.Join(to, name)); err != nil {
			t.Fatal(err)
		}
	}
	tea := filepath.Join(programs, "tea-temporal")
	blobs := t.TempDir()
	flags := []string{"--temporal", address, "--blobs", blobs}
	wait(t, start(t, tea, append([]string{"worker", "--queue", "edge"}, flags...)...))
	wait(t, start(t, tea, append([]string{"worker", "--queue", "tea"}, flags...)...))
	wait(t, start(t, tea, append([]string{"worker", "--queue", "database", "--plugins", plugins}, flags...)...))
	for before := range 2 {
		cmd := exec.Command(tea, append([]string{"run", "workflow.yaml", "-q", "--engine", "temporal", "--plugins", plugins}, flags...)...)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "HOME="+t.TempDir()), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var state struct {
			Before     int
			Hot        bool
			Remembered bool
		}
		if err := json.Unmarshal(out, &state); err != nil {
			t.Fatal(err)
		}
		if state.Before != before || !state.Hot || state.Remembered != (before == 0) {
			t.Errorf("run %d ends with %s", before+1, out)
		}
	}
}

// startTemporal starts a Temporal server.
func startTemporal(t *testing.T) (address string) {
	t.Helper()
	program, err := exec.Command("../scripts/temporal", "path").Output()
	if err != nil {
		missing(t, "run scripts/temporal install")
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(address)
	// The default would be ten activities a second.
	start(t, strings.TrimSpace(string(program)), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port, "--log-level", "never",
		"--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000", "--dynamic-config-value", `history.timerProcessorMaxTimeShift="10ms"`)
	return address
}

// start starts a process that is killed at the end.
func start(t *testing.T, program string, args ...string) *bufio.Scanner {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "TEA_PLUGINS=", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	lines, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return bufio.NewScanner(lines)
}

// wait waits until a worker works.
func wait(t *testing.T, lines *bufio.Scanner) {
	t.Helper()
	last := ""
	for lines.Scan() {
		last = lines.Text()
		if strings.Contains(lines.Text(), "working on queue") {
			go func() {
				for lines.Scan() { // an unread pipe would stop the worker
				}
			}()
			return
		}
	}
	t.Fatal("the worker ended: " + last)
}
