package ollamatest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/the-edge-agent/tea/plugins/llm/internal/tinymodel"
)

// Model is a model of the server.
type Model struct {
	Name     string
	Spec     tinymodel.Spec
	Template string
}

// Answers of the models.
const (
	// TinyAnswer is the answer of the model tiny to everything.
	TinyAnswer = "The sensor in room 7 reports 21 degrees ☀ outside."
	// AddCall is how the model tiny-tools calls its tool.
	AddCall = `{"name": "add", "arguments": {"x": 1}}`
	// AddAnswer is the answer of tiny-tools after the tool's result.
	AddAnswer = "The sum is 2."
	// PlanAnswer is the plan of tiny-plan for everything. A server that enforces the
	// schema of a plan writes the members in alphabetical order.
	PlanAnswer = `{"subtasks":[{"dependencies":[],"description":"Boil the water","id":"boil"},{"dependencies":["boil"],"description":"Pour it","id":"pour"}]}`
)

// plainTemplate lists the messages. The colon is the last token of a prompt.
const plainTemplate = `{{ range .Messages }}{{ .Role }}: {{ .Content }}
{{ end }}assistant:`

// toolTemplate mentions .Tools and .ToolCalls, from which Ollama infers that the model
// supports tools, and the form of a call. A prompt that ends with a tool's result ends
// in #, any other in a colon.
const toolTemplate = `{{ if .Tools }}{{ .Tools }}
{{ end }}{{ range $i, $m := .Messages }}{{ .Role }}: {{ .Content }}{{ range .ToolCalls }}{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}{{ end }}
{{ if eq (len (slice $.Messages $i)) 1 }}{{ if eq .Role "tool" }}#{{ else }}assistant:{{ end }}{{ end }}{{ end }}`

// Models returns the models that [Start] creates on every server.
func Models() []Model {
	return []Model{
		{Name: "tiny", Spec: tinymodel.Spec{Answer: TinyAnswer}, Template: plainTemplate},
		{Name: "tiny-plan", Spec: tinymodel.Spec{Answer: PlanAnswer}, Template: plainTemplate},
		{Name: "tiny-tools", Spec: tinymodel.Spec{Answer: AddCall, After: map[rune]string{'#': AddAnswer}}, Template: toolTemplate},
	}
}

// create creates the model on a running server.
func (m Model) create(ctx context.Context, program, dir, host string) error {
	weights, err := m.Spec.Encode()
	if err != nil {
		return fmt.Errorf("make model %s: %w", m.Name, err)
	}
	modelfile := filepath.Join(dir, m.Name+".Modelfile")
	text := "FROM ./" + m.Name + ".gguf\nTEMPLATE \"\"\"" + m.Template + "\"\"\"\n"
	if err := os.WriteFile(filepath.Join(dir, m.Name+".gguf"), weights, 0o600); err != nil {
		return fmt.Errorf("make model %s: %w", m.Name, err)
	}
	if err := os.WriteFile(modelfile, []byte(text), 0o600); err != nil {
		return fmt.Errorf("make model %s: %w", m.Name, err)
	}
	cmd := exec.CommandContext(ctx, program, "create", m.Name, "-f", modelfile)
	cmd.Env, cmd.Dir = environment(dir, host), dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ollama create %s: %w\n%s", m.Name, err, out)
	}
	return nil
}
