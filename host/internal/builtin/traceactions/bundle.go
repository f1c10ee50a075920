package traceactions

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/the-edge-agent/tea/host/internal/tracecontext"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Bundle returns the bundle trace.
func Bundle(version string) *tea.Bundle {
	local := func(a *tea.Action) { a.Replay.Local = true } // spans belong to the process
	return &tea.Bundle{
		Name: "trace", Version: version, Description: "Adds spans and entries to the run's trace.",
		Open: func(context.Context, tea.Settings) (any, error) { return newSpans(), nil },
		Actions: []tea.Action{
			tea.NewMethod("trace.start", "Begins a span around the next nodes.", (*spans).traceStart, tea.Idempotent(), tea.Reads(), local),
			tea.NewMethod("trace.log", "Adds an entry to the innermost open span.", (*spans).traceLog, tea.Idempotent(), tea.Reads(), local),
			tea.NewMethod("trace.end", "Ends the innermost open span.", (*spans).traceEnd, tea.Idempotent(), tea.Reads(), local),
		},
	}
}

type result struct {
	Success    bool    `json:"success" doc:"always true"`
	SpanID     string  `json:"span_id" doc:"the span, as 16 hexadecimal digits; empty if none is open"`
	DurationMS float64 `json:"duration_ms" doc:"the time since the span began"`
}

func (o span) result() result {
	elapsed := time.Since(o.started).Round(time.Microsecond)
	return result{Success: true, SpanID: o.id, DurationMS: float64(elapsed) / float64(time.Millisecond)}
}

type startParams struct {
	Name       string         `json:"name" minLength:"1" doc:"the name of the span"`
	Attributes map[string]any `json:"attributes,omitempty" doc:"attributes of the span"`
}

func (s *spans) traceStart(ctx context.Context, req *tea.Request, p startParams) (result, error) {
	// The call's key distinguishes spans of one node and stays the same when the
	// call is repeated.
	opened := span{id: tracecontext.SpanOf(req.IdempotencyKey, req.Attempt).String(), frame: execpath.Path(req.Node).Frame(), started: time.Now()}
	s.start(req.RunID, opened)
	logMark(ctx, req, slog.LevelDebug, "trace.start "+p.Name, nil, Mark{Kind: Start, SpanID: opened.id, Name: p.Name, Attributes: p.Attributes})
	return result{Success: true, SpanID: opened.id}, nil
}

type logParams struct {
	Message string         `json:"message" doc:"what happened"`
	Level   string         `json:"level,omitempty" enum:"debug,info,warn,error" default:"info" doc:"the severity"`
	Fields  map[string]any `json:"fields,omitempty" doc:"further facts"`
	SpanID  string         `json:"span_id,omitempty" doc:"a span other than the innermost open one"`
}

func (s *spans) traceLog(ctx context.Context, req *tea.Request, p logParams) (result, error) {
	var level slog.Level
	_ = level.UnmarshalText([]byte(p.Level)) // one of the enum
	current, ok := s.current(req.RunID, req.Node, p.SpanID)
	logMark(ctx, req, level, p.Message, p.Fields, Mark{Kind: Log, SpanID: current.id})
	if !ok {
		return result{Success: true}, nil
	}
	return current.result(), nil
}

type endParams struct {
	Status string `json:"status,omitempty" enum:"ok,error" default:"ok" doc:"error marks the span as failed"`
	Error  string `json:"error,omitempty" doc:"the reason of a failure; implies status: error"`
	SpanID string `json:"span_id,omitempty" doc:"a span other than the innermost open one"`
}

// traceEnd succeeds even if no span is open, for example after a resume in
// another process: a trace must not stop a run.
func (s *spans) traceEnd(ctx context.Context, req *tea.Request, p endParams) (result, error) {
	ended, ok := s.end(req.RunID, req.Node, p.SpanID)
	if !ok {
		var fields map[string]any
		if p.SpanID != "" {
			fields = map[string]any{"span_id": p.SpanID}
		}
		req.Host.Log(ctx, slog.LevelWarn, "trace.end: no span is open here", fields)
		return result{Success: true}, nil
	}
	res := ended.result()
	logMark(ctx, req, slog.LevelDebug, "trace.end", map[string]any{"duration_ms": res.DurationMS},
		Mark{Kind: End, SpanID: ended.id, Failed: p.Status == "error" || p.Error != "", Error: p.Error})
	return res, nil
}

func logMark(ctx context.Context, req *tea.Request, level slog.Level, message string, fields map[string]any, m Mark) {
	all := map[string]any{}
	maps.Copy(all, fields)
	all[MarkKey] = m.fields()
	req.Host.Log(ctx, level, message, all)
}
