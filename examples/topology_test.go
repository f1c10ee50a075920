package examples

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTopologyInCypher runs the example topology-cypher with the library that
// scripts/kuzu has prepared, and compares its state with the README.
func TestTopologyInCypher(t *testing.T) {
	t.Parallel()
	path, err := exec.CommandContext(t.Context(), "../scripts/kuzu", "path").Output()
	if err != nil {
		t.Skip("there is no Kuzu for this machine")
	}
	library := filepath.Join(strings.TrimSpace(string(path)), "libtea-kuzu.so")
	if _, err := os.Stat(library); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("Kuzu is missing: run scripts/kuzu install")
		}
		t.Skip("Kuzu is missing: run scripts/kuzu install")
	}
	dir := copyExample(t, "topology-cypher")
	workflow := filepath.Join(dir, "workflow.yaml")
	text, err := os.ReadFile(workflow)
	if err == nil {
		err = os.WriteFile(workflow, []byte(strings.Replace(string(text), "backend: cypher", "backend: cypher, library: "+library, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for failed, want := range map[string]int{"pump-1": 1, "boiler": 2} {
		got, err := shell(t.Context(), dir, t.TempDir(), "tea run workflow.yaml -q -i '{\"failed\": \""+failed+"\"}'")
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
