package device_test

import (
	"os"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestCommandsHaveFewerRights(t *testing.T) {
	t.Parallel()
	p := newPlant(t, allow(object{
		"status": sh("grep NoNewPrivs /proc/self/status", nil),
		"rights": sh("grep NoNewPrivs /proc/self/status", object{"new_privileges": true}),
		"id":     sh("id -u; id -G", object{"user": "nobody"}),
		"no one": sh("true", object{"user": "no such user"}),
		"net":    sh("cat /proc/net/dev", object{"no_network": true}),
	}))
	for range 5 { // the restriction of one command must not stay with a thread that starts others
		for _, c := range [][2]string{{"status", "NoNewPrivs:\t1\n"}, {"rights", "NoNewPrivs:\t0\n"}} {
			if got := p.must("command.run", object{"command": c[0]})["stdout"]; got != c[1] {
				t.Errorf("%s: %q, want %q", c[0], got, c[1])
			}
		}
	}
	p.fails("command.run", object{"command": "no one"}, tea.InternalError, "none")
	if os.Getuid() == 0 {
		if got := p.must("command.run", object{"command": "id"})["stdout"]; got != "65534\n65534\n" {
			t.Errorf("as nobody: %q", got)
		}
	}
	// Containers can forbid it. Then the command must not run.
	got, err := p.call("command.run", object{"command": "net"})
	if err != nil {
		if e := tea.AsError(err); e.Details["effect"] != "none" {
			t.Errorf("without a network: %v", err)
		}
		t.Logf("no network namespaces here: %v", err)
	} else if text := got["stdout"].(string); strings.Contains(text, "eth") || !strings.Contains(text, "lo:") {
		t.Errorf("devices: %s", text)
	}
}
