package teacmd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// lineHandler writes log records for people: "! node: message (error)". A
// record with an error shows no other attributes; -v shows all. The stack or
// last output of a plugin follows on lines of their own.
type lineHandler struct {
	level slog.Level
	attrs []slog.Attr
	mu    *sync.Mutex
	w     io.Writer
}

func newLineHandler(w io.Writer, level slog.Level) *lineHandler {
	return &lineHandler{level: level, mu: &sync.Mutex{}, w: w}
}

func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// isMark reports whether an attribute was added by a trace action for the
// tracer.
func isMark(attr slog.Attr) bool {
	mark, ok := attr.Value.Any().(map[string]any)
	return attr.Key == "trace" && ok && mark["kind"] != nil && mark["span_id"] != nil
}

func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	text := "! " + lineOf(h.attrs, r)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, text)
	return err
}

// lineOf returns the line of a record, without the mark before it.
func lineOf(attrs []slog.Attr, r slog.Record) string {
	attrs = slices.Clone(attrs)
	r.Attrs(func(attr slog.Attr) bool {
		attrs = append(attrs, attr)
		return true
	})
	var where, reason string
	var rest, below []string
	for _, attr := range attrs {
		if isMark(attr) {
			continue
		}
		if attr.Key == "stack" || attr.Key == "last_words" {
			below = append(below, linesOf(attr.Value)...)
			continue
		}
		text := strings.Join(strings.Fields(attr.Value.String()), " ")
		switch attr.Key {
		case "node":
			where = text + ": "
		case "plugin":
			where = "plugin " + text + ": "
		case "error":
			reason = text
		case "run", "workflow":
			if !strings.Contains(r.Message, text) {
				rest = append(rest, attr.Key+" "+text)
			}
		default:
			rest = append(rest, attr.Key+" "+text)
		}
	}
	if reason != "" {
		below = nil
	} else {
		slices.Sort(rest)
		reason = strings.Join(rest, ", ")
	}
	if reason != "" {
		reason = " (" + reason + ")"
	}
	text := fmt.Sprintf("%s%s%s\n", where, r.Message, reason)
	for _, line := range below {
		text += "    " + line + "\n"
	}
	return text
}

// linesOf returns the lines that follow a record: a list or a text.
func linesOf(v slog.Value) []string {
	var lines []string
	switch v := v.Any().(type) {
	case []any:
		for _, e := range v {
			lines = append(lines, strings.Join(strings.Fields(fmt.Sprint(e)), " "))
		}
	case string:
		for line := range strings.Lines(v) {
			lines = append(lines, strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "  "))
		}
	}
	const most = 30
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more lines", len(lines)-most))
	}
	return lines
}

func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.attrs = append(slices.Clip(h.attrs), attrs...)
	return &with
}

// WithGroup changes nothing: people do not need groups.
func (h *lineHandler) WithGroup(string) slog.Handler { return h }
