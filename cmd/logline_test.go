package teacmd

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
)

func TestLogLinesForPeople(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(newLineHandler(&out, slog.LevelWarn))
	log.Info("not shown")
	log.Warn("asked again", "node", "ask", "attempt", 1, "error", errors.New("connection\nrefused"))
	log.With("plugin", "llm").Error("the plugin wrote too much output", "lines", 3)
	log.WithGroup("g").Warn("careful")
	log.Warn("measured", "node", "note", "k", 2, "trace", map[string]any{"kind": "log", "span_id": "2a9d"})
	log.Error("panic", "node", "a", "stack", []any{"f (x.go:1)", "g (y.go:2)"}, "panic", "boom")
	log.Error("died", "last_words", "panic: x\n\tmain.go:1\n! forged\n", "reason", "exit status 2")
	want := "! ask: asked again (connection refused)\n! plugin llm: the plugin wrote too much output (lines 3)\n! careful\n! note: measured (k 2)\n" +
		"! a: panic (panic boom)\n    f (x.go:1)\n    g (y.go:2)\n" +
		"! died (reason exit status 2)\n    panic: x\n      main.go:1\n    ! forged\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
