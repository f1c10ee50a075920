package llm_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/plugins/llm/internal/protocoltest"
)

var update = flag.Bool("update", false, "record the answers of examples/fallback again, with the programs in bin")

// The recording of examples/fallback is made with servers that speak the protocols: one
// fails after the tool has answered, and the other one finishes the conversation.
func TestRecordExample(t *testing.T) {
	t.Parallel()
	if !*update {
		t.Skip("only with -update")
	}
	first := protocoltest.Start(t, "anthropic",
		protocoltest.Step{Reasoning: "I need the temperature.", Calls: []protocoltest.Call{{ID: "toolu_1", Name: "plant_temperature", Arguments: `{"device":"pump-1"}`}}},
		protocoltest.Step{Status: 529, Message: "Overloaded"},
	)
	second := protocoltest.Start(t, "openai-responses", protocoltest.Step{Reasoning: "71.5 is above 60.", Text: "Yes: pump-1 has 71.5 degrees Celsius, 11.5 above its limit."})
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	recording := filepath.Join(root, "examples", "fallback", "answers.jsonl")
	if err := os.Remove(recording); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	overlay, _ := json.Marshal(map[string]any{"settings": map[string]any{"llm": map[string]any{"replay": map[string]any{"record": true}}}})
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "tea"), "run", "workflow.yaml", "-q", "--plugins", filepath.Join(root, "bin"), "-C", string(overlay), "-i", `{"device": "pump-1"}`)
	cmd.Dir = filepath.Dir(recording)
	cmd.Env = append(os.Environ(), "ANTHROPIC_BASE_URL="+first.URL, "OPENAI_BASE_URL="+second.URL+"/v1", "ANTHROPIC_API_KEY="+protocoltest.Key, "OPENAI_API_KEY="+protocoltest.Key)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := len(second.Seen()); n != 1 {
		t.Errorf("%d requests of the second server", n)
	}
	if err := os.Chmod(recording, 0o644); err != nil { //nolint:gosec // a file of the repository
		t.Fatal(err)
	}
}
