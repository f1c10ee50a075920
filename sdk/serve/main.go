package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/handshake"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// Main serves the bundle until the host ends it, and exits the process.
//
// Started manually it prints what it is; --manifest prints the bundle's manifest as
// JSON, --version its name and version. For a bundle that fails [tea.Bundle.Check],
// it exits immediately with a message on stderr.
//
// Main owns the process: it sets slog's default logger, so that records logged with a
// call's context are added to the run's log and others to the host's log.
func Main(bundle tea.Bundle) {
	if err := bundle.Check(); err != nil {
		fmt.Fprintln(os.Stderr, "tea plugin:", err)
		os.Exit(1)
	}
	if os.Getenv(handshake.CookieKey) != handshake.CookieValue {
		os.Exit(byHand(&bundle, os.Args[1:], os.Stdout, os.Stderr))
	}
	if err := serve(&bundle); err != nil {
		fmt.Fprintln(os.Stderr, "tea plugin:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// byHand responds to a user who has started the plugin without a host, and returns
// the exit code.
func byHand(bundle *tea.Bundle, args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 {
		switch args[0] {
		case "--manifest", "-manifest":
			enc := json.NewEncoder(stdout)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(bundle.Manifest()); err != nil {
				fmt.Fprintln(stderr, "tea plugin: write the manifest:", err)
				return 1
			}
			return 0
		case "--version", "-version":
			fmt.Fprintln(stdout, "tea-plugin-"+bundle.Name, bundle.Version)
			return 0
		}
	}
	fmt.Fprintf(stderr, `This is tea-plugin-%s %s, a plugin with actions for tea workflows.
It is not started by hand: tea starts it when a workflow uses one of its
actions. Put it into a directory and name that with --plugins, or into ./plugins
and run tea plugin trust.

  --manifest   print the actions with their parameters as JSON
  --version    print name and version
`, bundle.Name, bundle.Version)
	return 2
}

// logTo sets slog's default logger for a plugin: a record with a call's context
// goes to the run's log, any other to w as a line of JSON with the keys of
// go-plugin (@level, @message, @timestamp).
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
