package teacmd

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// journalHandler sends log records to the systemd journal: the line for people is
// the message, and the attributes are fields such as TEA_RUN.
type journalHandler struct {
	level slog.Level
	attrs []slog.Attr
	app   *app
}

func (h *journalHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle sends a record, or prints it if the journal does not accept it.
func (h *journalHandler) Handle(_ context.Context, r slog.Record) error {
	line := lineOf(h.attrs, r)
	fields := map[string]string{"SYSLOG_IDENTIFIER": "tea"}
	add := func(attr slog.Attr) bool {
		if !isMark(attr) {
			fields[journalField(attr.Key)] = h.app.masked(attr.Value.String())
		}
		return true
	}
	for _, attr := range h.attrs {
		add(attr)
	}
	r.Attrs(add)
	if h.app.journal(h.app.masked(strings.TrimSuffix(line, "\n")), priority(r.Level), fields) == nil {
		return nil
	}
	_, err := maskedWriter{h.app}.Write([]byte("! " + line))
	return err
}

func (h *journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.attrs = append(slices.Clip(h.attrs), attrs...)
	return &with
}

// WithGroup changes nothing: fields have no groups.
func (h *journalHandler) WithGroup(string) slog.Handler { return h }

// priority returns the journal's number for a level.
func priority(level slog.Level) int {
	switch {
	case level >= slog.LevelError:
		return 3
	case level >= slog.LevelWarn:
		return 4
	case level >= slog.LevelInfo:
		return 6
	}
	return 7
}

// journalField returns the name of an attribute's field. Names consist of at most 64
// letters, digits and underscores.
func journalField(key string) string {
	name := []byte("TEA_" + strings.ToUpper(key))
	for i, c := range name {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			name[i] = '_'
		}
	}
	return string(name[:min(len(name), 64)])
}
