package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// The client of the A2A SDK for Python uses a workflow as an agent.
func TestA2APeer(t *testing.T) {
	t.Parallel()
	python := filepath.Join(peertest.Dir(t, "../..", "a2a"), "python", "bin", "python")
	s := newProject(t, map[string]string{"colors.yaml": "description: Asks for colors.\n" + askTwice}).serveAdmin()
	for _, version := range []string{"1.0", "0.3"} {
		cmd := exec.CommandContext(t.Context(), python, "../../test/a2a/client.py", s.url+"/a2a/colors", version, adminToken)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("version %s: %v\n%s\n%s", version, err, out, s.log)
		}
		want := strings.TrimSpace(`
card colors Asks for colors. colors ['token']
send task INPUT_REQUIRED: Which color?
again task INPUT_REQUIRED: Which color?
again the same task
answer task begun
answer status WORKING
answer status INPUT_REQUIRED: How many?
answer task COMPLETED
answer result 3 blue
get COMPLETED 3.0
stream task begun
stream status WORKING
stream status INPUT_REQUIRED: Which color?
subscribe task INPUT_REQUIRED: Which color?
cancel CANCELED
cancel TaskNotCancelableError
get TaskNotFoundError`)
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(strings.TrimSpace(string(out)), "\n")); diff != "" {
			t.Errorf("version %s (-want +got):\n%s", version, diff)
		}
	}
}
