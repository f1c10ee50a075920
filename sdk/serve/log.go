package serve

import (
	"io"
	"log/slog"
	"os"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/handshake"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// logTo makes slog's default logger one for a plugin: a record with a call's
// context goes to the run's log, any other to w as a line of JSON with the
// keys that hosts of go-plugin know (@level, @message, @timestamp).
func logTo(w io.Writer) {
	lines := slog.NewJSONHandler(w, &slog.HandlerOptions{
		Level:       pb.ToLevel(os.Getenv(handshake.LogLevel)),
		ReplaceAttr: hclogKeys,
	})
	slog.SetDefault(slog.New(tea.LogHandler(lines)))
}

func hclogKeys(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		a.Key = "@timestamp"
	case slog.MessageKey:
		a.Key = "@message"
	case slog.LevelKey:
		return slog.String("@level", strings.ToLower(a.Value.String()))
	}
	return a
}
