package serve

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/the-edge-agent/tea/sdk/internal/handshake"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

type callKey struct{}

// withCall marks ctx as that of a call, so that records logged with it are
// the call's.
func withCall(ctx context.Context, h *callHost) context.Context {
	return context.WithValue(ctx, callKey{}, h)
}

// logTo makes slog's default logger one for a plugin: a record with a call's
// context goes to the run's log, any other to w as a line of JSON with the
// keys that hosts of go-plugin know (@level, @message, @timestamp).
func logTo(w io.Writer) {
	lines := slog.NewJSONHandler(w, &slog.HandlerOptions{
		Level:       pb.ToLevel(os.Getenv(handshake.LogLevel)),
		ReplaceAttr: hclogKeys,
	})
	slog.SetDefault(slog.New(&logHandler{Handler: lines}))
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

// logHandler sends a call's records to the host and leaves the rest to the
// handler inside, which also collects attributes and groups.
type logHandler struct {
	slog.Handler
	// scope puts a record's attributes under the groups and beside the
	// attributes that the logger has; nil is no change.
	scope func([]slog.Attr) []slog.Attr
}

// Handle sends the record to where it belongs.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	call, ok := ctx.Value(callKey{}).(*callHost)
	if !ok {
		return h.Handler.Handle(ctx, r)
	}
	attrs := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	if h.scope != nil {
		attrs = h.scope(attrs)
	}
	call.Log(ctx, r.Level, r.Message, toFields(attrs))
	return nil
}

// WithAttrs adds attributes to every record.
func (h *logHandler) WithAttrs(more []slog.Attr) slog.Handler {
	return h.scoped(h.Handler.WithAttrs(more), func(attrs []slog.Attr) []slog.Attr {
		return append(append(make([]slog.Attr, 0, len(more)+len(attrs)), more...), attrs...)
	})
}

// WithGroup puts what follows into a group.
func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.scoped(h.Handler.WithGroup(name), func(attrs []slog.Attr) []slog.Attr {
		return []slog.Attr{{Key: name, Value: slog.GroupValue(attrs...)}}
	})
}

func (h *logHandler) scoped(inside slog.Handler, inner func([]slog.Attr) []slog.Attr) *logHandler {
	outer := h.scope
	if outer == nil {
		return &logHandler{Handler: inside, scope: inner}
	}
	return &logHandler{Handler: inside, scope: func(attrs []slog.Attr) []slog.Attr { return outer(inner(attrs)) }}
}

// toFields turns attributes into a log record's fields.
func toFields(attrs []slog.Attr) map[string]any {
	fields := make(map[string]any, len(attrs))
	for _, a := range attrs {
		v := a.Value.Resolve()
		switch {
		case v.Kind() != slog.KindGroup:
			fields[a.Key] = plainValue(v)
		case a.Key == "":
			for key, field := range toFields(v.Group()) {
				fields[key] = field
			}
		default:
			fields[a.Key] = toFields(v.Group())
		}
	}
	return fields
}

func plainValue(v slog.Value) any {
	switch v.Kind() {
	case slog.KindDuration, slog.KindTime:
		return v.String()
	}
	if err, ok := v.Any().(error); ok {
		return err.Error()
	}
	return v.Any()
}
