package teatest

import (
	"log/slog"
	"os"

	tea "github.com/the-edge-agent/tea/sdk"
)

var firstLogger = slog.Default()

// routeLogs makes what actions log with slog reach the call's host, as it does
// in a plugin's process. A test that made another logger its default keeps it.
func routeLogs() {
	if slog.Default() == firstLogger {
		slog.SetDefault(slog.New(tea.LogHandler(slog.NewTextHandler(os.Stderr, nil))))
	}
}
