package memory_test

import (
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
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
