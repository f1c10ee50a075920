package python_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/python"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/proctest"
)

// family starts a child in another session.
const family = "import os, subprocess, sys\nc = subprocess.Popen(['sleep', '600'], start_new_session=True)\nreturn {'pids': [os.getpid(), c.pid]}"

func pids(t *testing.T, v any) []int {
	t.Helper()
	list := v.(object)["pids"].([]any)
	return []int{int(list[0].(int64)), int(list[1].(int64))}
}

func TestNoProcessSurvivesClose(t *testing.T) {
	t.Parallel()
	needPython(t)
	got, err := run(t, on(nil), object{"code": family}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if left := proctest.Await(30*time.Second, pids(t, got)...); len(left) > 0 {
		t.Errorf("the processes %v still run", left)
	}
}

func TestNoProcessSurvivesAKilledHost(t *testing.T) {
	t.Parallel()
	needPython(t)
	if os.Getenv("PYTHON_TEST_OWNER") != "" {
		code := strings.Replace(family, "return", "actions.test_started", 1)
		code = strings.Replace(code, "{'pids': [os.getpid(), c.pid]}", "(pids=[os.getpid(), c.pid])", 1) + "\nwhile True: pass"
		host := &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){"test.started": func(_ context.Context, params any) (any, error) {
			fmt.Println("\nstarted", pids(t, params)[0], pids(t, params)[1])
			return object{}, nil
		}}}
		_, err := teatest.Call(t, python.Bundle(), teatest.Request{Action: "python.run", Settings: on(nil), Params: object{"code": code}, Host: host})
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestNoProcessSurvivesAKilledHost$", "-test.v")
	cmd.Env, cmd.WaitDelay = append(os.Environ(), "PYTHON_TEST_OWNER=1"), 10*time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var a, b int
	for lines := bufio.NewScanner(out); a == 0 && lines.Scan(); {
		if after, ok := strings.CutPrefix(lines.Text(), "started "); ok {
			if _, err := fmt.Sscan(after, &a, &b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if left := proctest.Await(30*time.Second, a, b); a == 0 || len(left) > 0 {
		t.Errorf("the processes %v of %d, %d still run", left, a, b)
	}
}
