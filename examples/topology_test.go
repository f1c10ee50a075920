package examples

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kuzu returns the variable with the library that scripts/kuzu has prepared.
func kuzu(t *testing.T) string {
	t.Helper()
	path, err := exec.CommandContext(t.Context(), "../scripts/kuzu", "path").Output()
	library := filepath.Join(strings.TrimSpace(string(path)), "libtea-kuzu.so")
	if err == nil {
		_, err = os.Stat(library)
	}
	if err != nil {
		missing(t, fmt.Sprintf("Kuzu is missing: run scripts/kuzu install (%v)", err))
	}
	return "TEA_GRAPH_LIBRARY=" + library
}

// TestTopologyInCypher runs the example topology-cypher with the library that
// scripts/kuzu has prepared, and compares its state with the README.
func TestTopologyInCypher(t *testing.T) {
	t.Parallel()
	library := kuzu(t)
	dir := copyExample(t, "topology-cypher")
	for failed, want := range map[string]int{"pump-1": 1, "boiler": 2, "office": 0} {
		got, err := shell(t.Context(), dir, t.TempDir(), library+" tea run workflow.yaml -q -i '{\"failed\": \""+failed+"\"}'")
		if err != nil || got.code != 0 {
			t.Fatalf("exit code %d: %v\n%s", got.code, err, got.stderr)
		}
		var state struct {
			Lost  []map[string]string
			Blind []map[string]string
		}
		if err := json.Unmarshal([]byte(got.stdout), &state); err != nil {
			t.Fatal(err)
		}
		if len(state.Blind) != want {
			t.Errorf("without %s these sensors are blind: %v", failed, state.Blind)
		}
		if failed != "pump-1" {
			continue
		}
		readme, err := os.ReadFile("topology-cypher/README.md")
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(readme), "```json\n")
		shown, _, _ := strings.Cut(after, "```")
		if diff := cmp.Diff(shown, got.stdout); diff != "" {
			t.Errorf("the state (-README +got):\n%s", diff)
		}
	}
}
