package teacmd

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/cmd/internal/report"
	"golang.org/x/term"
)

// reportFlags set how much is reported.
type reportFlags struct {
	Verbose int  `short:"v" type:"counter" help:"Show log lines; -vv also shows those for debugging."`
	Quiet   bool `short:"q" config:"" help:"Show nothing but errors."`
}

// setReport makes the report that receives all output for people.
func (a *app) setReport(f reportFlags) {
	a.quiet = f.Quiet
	o := report.Options{Quiet: f.Quiet, ASCII: !a.utf8(), Mask: a.masked, Quotes: a.quotes}
	if a.terminal(a.stderr) {
		o.Color = a.getenv("NO_COLOR") == ""
		o.Size = func() (int, int) { return terminalSize(a.stderr) }
	}
	a.report = report.New(a.stderr, o)
}

// logger returns a logger to the report at the level of the flags: warnings for
// people or, with -v, everything as key=value.
func (a *app) logger(f reportFlags) *slog.Logger {
	level := slog.LevelDebug
	switch {
	case f.Quiet:
		level = slog.LevelError
	case f.Verbose == 0:
		level = slog.LevelWarn
	case f.Verbose == 1:
		level = slog.LevelInfo
	}
	switch w := (maskedWriter{a}); {
	case a.journal != nil:
		return slog.New(&journalHandler{level: level, app: a})
	case level >= slog.LevelWarn:
		return slog.New(newLineHandler(w, level))
	default:
		return newLogger(w, level)
	}
}

// masked removes secrets from a text for the log.
func (a *app) masked(text string) string {
	text = a.mask.Text(text)
	if a.hide != nil {
		text = a.hide(text)
	}
	return text
}

// quotes reports whether a message may show lines of a file: one below the working directory, or next to or below a
// file that the command line names. A workflow from elsewhere can name any of the user's files as a subgraph.
func (a *app) quotes(file string) bool {
	file = resolved(file)
	near := func(dir string) bool {
		rel, err := filepath.Rel(dir, file)
		return err == nil && filepath.IsLocal(rel) && !ofProcess(file)
	}
	return near(resolved(".")) || slices.ContainsFunc(a.args, func(arg string) bool { return isFile(arg) && near(filepath.Dir(resolved(arg))) })
}

// maskedWriter writes log lines to the report without the secrets in them: a
// plugin may print its settings.
type maskedWriter struct{ app *app }

func (w maskedWriter) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.app.report, w.app.masked(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
			if len(groups) == 0 && attr.Key == slog.TimeKey {
				return slog.Attr{} // the system log adds the time
			}
			return attr
		},
	}))
}

// terminal reports whether a file is a terminal that can move its cursor.
func (a *app) terminal(f *os.File) bool {
	return a.getenv("TERM") != "dumb" && a.getenv("TERM") != "" && term.IsTerminal(int(f.Fd()))
}

func terminalSize(f *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return 80, 24
	}
	return columns, rows
}

// table prints rows on stdout, fitted to the width of the terminal.
func (a *app) table(header []string, rows [][]string) error {
	columns := 0
	if a.terminal(a.stdout.file) {
		columns, _ = terminalSize(a.stdout.file)
	}
	return report.Table(a.out, columns, header, rows)
}

// utf8 reports whether the locale uses UTF-8.
func (a *app) utf8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := a.getenv(name); locale != "" {
			locale = strings.ToLower(locale)
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return false
}
