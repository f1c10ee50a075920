package examples

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// TestPump runs the commands of the example pump against its simulator.
func TestPump(t *testing.T) {
	t.Parallel()
	python := peertest.Dir(t, "..", "pymodbus") + "/python/bin/python"
	ctx, stop := context.WithCancel(context.Background())
	pump := exec.CommandContext(ctx, python, "pump/simulator.py", "0")
	pump.WaitDelay = 10 * time.Second
	out, err := pump.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := pump.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = pump.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + strings.TrimSpace(strings.TrimPrefix(line, "listening at port "))
	dir, home := copyExample(t, "pump"), t.TempDir()
	readme, err := os.ReadFile("pump/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		code    int
		shown   string
	}{
		{"tea run workflow.yaml -c runs", 130, ""},
		{`tea resume workflow.yaml -c runs --answer 'ask:ask="yes"'`, 0, "json"},
		{`tea call modbus.write '{"point": "speed", "value": 60}' -f workflow.yaml`, 1, ""},
		{"tea test", 0, ""},
	} {
		if !strings.Contains(string(readme), c.command) {
			t.Errorf("the README lacks %s", c.command)
		}
		got, err := shell(t.Context(), dir, home, fmt.Sprintf("export PUMP=%s; %s", address, c.command))
		if err != nil || got.code != c.code {
			t.Fatalf("%s: exit code %d, %v\n%s%s", c.command, got.code, err, got.stdout, got.stderr)
		}
		if c.shown != "" && !strings.Contains(string(readme), "```"+c.shown+"\n"+got.stdout+"```") {
			t.Errorf("the README does not show:\n%s", got.stdout)
		}
		if c.code == 1 {
			_, shown, _ := strings.Cut(string(readme), "```\npermission_denied: ")
			shown, _, _ = strings.Cut(shown, "\n")
			if diff := cmp.Diff(true, strings.Contains(got.stderr, shown)); diff != "" {
				t.Errorf("the README shows %q, the command %s", shown, got.stderr)
			}
		}
	}
}
