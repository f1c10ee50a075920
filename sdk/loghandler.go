package tea

import (
	"context"
	"log/slog"
)

type callKey struct{}

// hostContext is the context of a call: records that are logged with it belong to the
// call.
type hostContext struct {
	context.Context
	host Host
}

// Value returns the host, or a value of the caller's context.
func (c *hostContext) Value(key any) any {
	if key == (callKey{}) {
		return c.host
	}
	return c.Context.Value(key)
}

// LogHandler returns a handler for slog. It sends records that an action logs with
// the context of its call to the run's log, as [Host.Log] does, and all others to
// next, which also decides which levels are enabled. A plugin's process already
// uses it. A program that links bundles in sets it as the default:
// slog.SetDefault(slog.New(tea.LogHandler(next))).
func LogHandler(next slog.Handler) slog.Handler { return &logHandler{Handler: next} }

// logHandler sends the records of a call to the host, and others to the inner
// handler, which also collects attributes and groups.
type logHandler struct {
	slog.Handler
	// scope adds the attributes of the logger to the attributes of a record and
	// puts them into its groups; nil changes nothing.
	scope func([]slog.Attr) []slog.Attr
}

// Handle sends the record to the host or to the inner handler.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	call, ok := ctx.Value(callKey{}).(Host)
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

// WithGroup puts the following attributes into a group.
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

// toFields converts attributes to the fields of a log record.
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
