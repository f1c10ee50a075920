package driver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/host"
)

// write writes a file to a temporary directory.
func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The examples whose actions are those of the host, and whose results depend on
// neither the time nor the machine.
func TestExamplesRunLikeLocalRuns(t *testing.T) {
	t.Parallel()
	h, p := newHost(t)
	s := newSite(t, h, nil)
	for name, input := range map[string]map[string]any{
		"hello": {"name": "Ada"}, "loops": {}, "map": {}, "parallel": {}, "routing": {"sensor": "a", "celsius": 20.5}, "steps-and-subgraph": {"text": "one three two"}, "lua-module": {}, "human": {}, "durable": {}, "budget": {}, "files": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A worker has the absolute paths of files in its messages.
			wf, err := h.Load(absolute(filepath.Join("../../../../examples", name, "workflow.yaml")), host.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer wf.Close()
			s.compare(t, p, wf, host.RunOptions{Input: input}, 0)
		})
	}
}
