package memory_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

func TestTextChunk(t *testing.T) {
	t.Parallel()
	o := mustOpen(t, map[string]any{"path": t.TempDir()})
	defer o.close()
	text := "# Pump\nThe pump is loud. It was changed in May.\n## Parts\n" + strings.Repeat("A seal is old. ", 30)
	r := o.must("text.chunk", map[string]any{"text": text, "by": "headings", "size": 40})
	chunks := r["chunks"].([]any)
	if len(chunks) < 4 || r["count"] != int64(len(chunks)) {
		t.Fatalf("%v chunks: %v", r["count"], chunks)
	}
	for i, c := range chunks {
		c := c.(map[string]any)
		start, end := c["start"].(int64), c["end"].(int64)
		if text[start:end] != c["text"] || c["index"] != int64(i) || c["tokens"].(int64) > 40 {
			t.Errorf("chunk %d: %v", i, c)
		}
	}
	same(t, "headings", chunks[len(chunks)-1].(map[string]any)["headings"], any([]any{"Pump", "Parts"}))
	same(t, "nothing", o.must("text.chunk", map[string]any{"text": " "})["count"], any(int64(0)))
	if _, err := o.call("text.chunk", map[string]any{"text": "a", "size": 10, "overlap": 10}); typeOf(err) != tea.ValidationError {
		t.Errorf("an overlap of the size: %v", err)
	}
}

func TestTokensOfO200K(t *testing.T) {
	t.Parallel()
	dir := peertest.Dir(t, "../..", "tiktoken")
	vocabulary, err := exec.CommandContext(t.Context(), "node", "../../test/tiktoken/vocabulary.mjs", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "o200k_base.tiktoken")
	text := strings.Repeat("दबाव हिन्दी पंप ", 40)
	settings := map[string]any{"path": t.TempDir(), "vocabulary": path}
	if _, err := openBundle(t, settings); typeOf(err) != tea.ValidationError || !strings.Contains(err.Error(), "settings.memory.vocabulary") {
		t.Errorf("without the file: %v", err)
	}
	if err := os.WriteFile(path, vocabulary, 0o600); err != nil {
		t.Fatal(err)
	}
	encoding, err := tokens.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	o := mustOpen(t, settings)
	defer o.close()
	for _, c := range o.must("text.chunk", map[string]any{"text": text, "size": 30})["chunks"].([]any) {
		c := c.(map[string]any)
		same(t, "tokens of a chunk", c["tokens"], any(int64(encoding.Count(c["text"].(string)))))
	}
	o.must("memory.file_store", map[string]any{"path": "docs/a.md", "content": text})
	o.must("memory.file_store", map[string]any{"path": "docs/b.md", "content": text + "pump"})
	config := map[string]any{"layers": []any{map[string]any{"scope": "directory", "directory": "docs"}}, "max_tokens": 150}
	got := o.must("context.assemble", map[string]any{"query": "पंप", "config": config})
	assembled := got["context"].(string)
	same(t, "tokens of a context", got["tokens"], any(int64(encoding.Count(assembled))))
	if n := tokens.Count(assembled); n <= 150 || encoding.Count(assembled) < 100 {
		t.Errorf("%d tokens of cl100k_base in %q", n, assembled)
	}
}
