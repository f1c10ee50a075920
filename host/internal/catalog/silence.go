package catalog

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// DefaultSilence bounds the silence of a plugin during a call.
	DefaultSilence = 5 * time.Minute
	// maxCallFactor bounds the whole call, as a multiple of the limit for silence.
	maxCallFactor = 12
)

// silenceLimit is the host of a call without a deadline. It ends the call when the
// plugin is silent for too long. Tokens, progress, logs and callbacks count as
// activity; the time of a callback is not silence.
type silenceLimit struct {
	tea.Host
	limit     time.Duration
	cancel    context.CancelCauseFunc
	timer     *time.Timer
	begin     time.Time
	last      atomic.Int64 // time of the last activity, after begin
	callbacks atomic.Int64 // under way
}

// invokeWithLimit calls an action of a plugin. The error is a timeout if the
// plugin was silent for longer than limit, or took maxCallFactor times as long. It
// uses one context and one timer: with a deadline, gRPC would set more timers at
// both ends and send another header with each call.
func invokeWithLimit(ctx context.Context, invoker Invoker, req *tea.Request, limit time.Duration) (*tea.Response, error) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &silenceLimit{Host: req.Host, limit: limit, cancel: cancel, begin: time.Now()}
	req.Host = p
	action := req.Action
	p.timer = time.AfterFunc(math.MaxInt64, func() { p.check(action) })
	p.timer.Reset(limit) // set before it fires
	defer p.timer.Stop()
	res, err := invoker.Invoke(inner, req)
	var late *tea.Error
	if err != nil && ctx.Err() == nil && errors.As(context.Cause(inner), &late) && !errors.As(err, new(interface{ PluginFault() })) {
		return nil, late
	}
	return res, err
}

// check ends the call, or waits for the remaining time.
func (p *silenceLimit) check(action string) {
	took := time.Since(p.begin)
	rest := maxCallFactor*p.limit - took
	left := p.limit - (took - time.Duration(p.last.Load()))
	if left <= 0 && p.callbacks.Load() > 0 {
		left = p.limit
	}
	switch {
	case rest <= 0:
		p.cancel(tea.Errorf(tea.Timeout, "%s took longer than %s; set timeout_seconds of the node to allow more", action, maxCallFactor*p.limit))
	case left <= 0:
		p.cancel(tea.Errorf(tea.Timeout, "%s: the plugin was silent for %s (settings.plugins.call_timeout_seconds, or timeout_seconds of the node)", action, p.limit))
	default:
		p.timer.Reset(min(left, rest))
	}
}

func (p *silenceLimit) touch() { p.last.Store(int64(time.Since(p.begin))) }

// enter records a callback; the returned function ends it.
func (p *silenceLimit) enter() (leave func()) {
	p.callbacks.Add(1)
	return func() {
		p.touch()
		p.callbacks.Add(-1)
	}
}

func (p *silenceLimit) Invoke(ctx context.Context, action string, params any) (*tea.Response, error) {
	return p.InvokeAs(ctx, tea.Invocation{Action: action, Params: params})
}

func (p *silenceLimit) InvokeAs(ctx context.Context, call tea.Invocation) (*tea.Response, error) {
	defer p.enter()()
	caller := tea.Request{Host: p.Host}
	return caller.Invoke(ctx, call)
}

func (p *silenceLimit) Log(ctx context.Context, level slog.Level, message string, fields map[string]any) {
	p.touch()
	p.Host.Log(ctx, level, message, fields)
}

func (p *silenceLimit) Token(ctx context.Context, text string) {
	p.touch()
	p.Host.Token(ctx, text)
}

func (p *silenceLimit) Progress(ctx context.Context, fraction float64, message string) {
	p.touch()
	p.Host.Progress(ctx, fraction, message)
}

func (p *silenceLimit) SetNote(ctx context.Context, key string, note any) error {
	defer p.enter()()
	return p.Host.SetNote(ctx, key, note)
}

// ReportUsage forwards usage to a host with a budget.
func (p *silenceLimit) ReportUsage(ctx context.Context, u tea.Usage) error {
	p.touch()
	if reporter, ok := p.Host.(tea.UsageReporter); ok {
		return reporter.ReportUsage(ctx, u)
	}
	return nil
}
