package guard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// SettingsKey is the top-level key of the settings for all protocols.
const SettingsKey = "device"

// Settings are the settings under settings.device.
type Settings struct {
	DryRun bool   `json:"dry_run,omitempty" doc:"checks writes and shows them in the log, but sends none"`
	State  string `json:"state,omitempty" format:"path" doc:"directory where max_step and per_minute keep the earlier writes; default: tea/device in $XDG_STATE_HOME, or in ~/.local/state"`
}

// Rule restricts the writes to a target, according to the settings.
type Rule struct {
	Min     *float64 `json:"min,omitempty" atMost:"max" doc:"smallest value that can be written"`
	Max     *float64 `json:"max,omitempty" doc:"largest value that can be written"`
	MaxStep *float64 `json:"max_step,omitempty" minimum:"0" doc:"largest difference from the current value"`
	Limits
}

// Limits restrict writes. They also apply to writes without a value, such as commands.
type Limits struct {
	PerMinute int  `json:"per_minute,omitempty" minimum:"1" maximum:"10000" doc:"largest number of writes in 60 seconds, over all runs"`
	DryRun    bool `json:"dry_run,omitempty" doc:"checks writes and shows them in the log, but sends none"`
	Approval  bool `json:"approval,omitempty" doc:"a person approves each write through human.ask"`
}

// Numeric reports whether only numbers can be checked against the rule.
func (r *Rule) Numeric() bool { return r.Min != nil || r.Max != nil || r.MaxStep != nil }

// Write is a write that an action is about to make.
type Write struct {
	// Setting is the path of the rule in the settings. Together with Machine, the address of the target, it identifies
	// the rule.
	Setting, Machine string
	// Target is the thing that changes, such as `the point "speed"`.
	Target string
	// Rule is the rule of the target; nil means that no write is allowed.
	Rule *Rule
	// Value is a number, a truth value, a list of them, or something that has no limits.
	Value any
	// Shown is the value as a person reads it; default: as JSON.
	Shown string
	// Current reads the current value. If it is nil, the value is compared with the last one written to the target.
	Current func(ctx context.Context) (any, error)

	numbers []float64 // of Value; nil if it has none
}

// Guards checks writes. It is safe for concurrent use, also by several processes.
type Guards struct {
	settings Settings
	now      func() time.Time
}

// Open returns the guards for the settings of a workflow.
func Open(s tea.Settings) (*Guards, error) {
	g := &Guards{now: time.Now}
	return g, s.Decode(SettingsKey, &g.settings)
}

// Permit calls send if the rule allows the write, and reports whether dry_run prevented it. A refused write is a
// permission_denied error, a write that comes too early a rate_limited error. If the run stops to ask a person, it
// returns the error of human.ask.
func (g *Guards) Permit(ctx context.Context, req *tea.Request, w Write, send func(ctx context.Context) error) (dry bool, err error) {
	w.numbers = numbers(w.Value)
	w.Shown = cmp.Or(w.Shown, value.Brief(w.Value))
	if w.Rule == nil {
		return false, refusal("%s must not be written: %s has no rule for it", w.Target, w.Setting)
	}
	if err := w.checkRange(); err != nil {
		return false, err
	}
	dry = g.settings.DryRun || w.Rule.DryRun || req.DryRun
	if w.Rule.Approval && !dry {
		if err := approve(ctx, req, w); err != nil {
			return false, err
		}
	}
	if w.Rule.MaxStep != nil || w.Rule.PerMinute > 0 {
		var h *history
		if h, err = g.open(ctx, w); err != nil {
			return false, err
		}
		defer h.close()
		if err := g.checkHistory(ctx, h, w); err != nil {
			return false, err
		}
		if !dry {
			// Counted before it is sent: a crash in between must not allow one more.
			before := h.Values[w.Target]
			if err := h.record(g.now(), w); err != nil {
				return false, err
			}
			defer func() { h.settle(w, before, err) }()
		}
	}
	if dry {
		req.Host.Log(ctx, 0, fmt.Sprintf("dry run: %s is not sent to %s", w.Shown, w.Target), nil)
		return true, nil
	}
	return false, send(ctx)
}

// checkRange checks the value against min and max.
func (w Write) checkRange() error {
	if w.Rule.Numeric() && w.numbers == nil {
		return refusal("%s cannot be written to %s: %s has limits for numbers, and this is not a number", w.Shown, w.Target, w.Setting)
	}
	for _, v := range w.numbers {
		switch r := w.Rule; {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return refusal("%s cannot be written to %s: it is not a finite number", w.Shown, w.Target)
		case r.Min != nil && v < *r.Min:
			return refusal("%s is less than the minimum %s of %s (%s.min)", number(v), number(*r.Min), w.Target, w.Setting)
		case r.Max != nil && v > *r.Max:
			return refusal("%s is more than the maximum %s of %s (%s.max)", number(v), number(*r.Max), w.Target, w.Setting)
		}
	}
	return nil
}

// checkHistory checks max_step and per_minute.
func (g *Guards) checkHistory(ctx context.Context, h *history, w Write) error {
	if w.Rule.MaxStep != nil {
		current := h.Values[w.Target]
		if w.Current != nil {
			v, err := w.Current(ctx)
			if err != nil {
				return NotSent(err)
			}
			if current = numbers(v); current == nil {
				return refusal("the current value of %s is not a number, so max_step cannot be checked", w.Target)
			}
		}
		for i, from := range current {
			if w.Current == nil { // each value in the history is possible
				i = 0
			}
			if i >= len(w.numbers) {
				break
			}
			v := w.numbers[i]
			// A tolerance of a few units in the last place: 0.3 is one step of 0.1 from 0.2.
			if math.Abs(v-from) > *w.Rule.MaxStep+1e-9*math.Max(math.Abs(v), math.Abs(from)) {
				return refusal("%s is more than %s away from the current value %s of %s (%s.max_step)", number(v), number(*w.Rule.MaxStep), number(from), w.Target, w.Setting)
			}
		}
	}
	if n := w.Rule.PerMinute; n > 0 {
		if wait := h.wait(g.now(), n); wait > 0 {
			if h.clockBack { // the wait must not begin anew with each attempt
				if err := h.save(); err != nil {
					return err
				}
			}
			e := tea.Errorf(tea.RateLimited, "%s was written %d times in the last 60 seconds (%s.per_minute)", w.Target, n, w.Setting)
			e.RetryAfter = wait
			return NotSent(e)
		}
	}
	return nil
}

// approve asks a person. The key contains what was asked, so that an answer never
// applies to another value.
func approve(ctx context.Context, req *tea.Request, w Write) error {
	shown := visible(w.Shown)
	if len(shown) > maxShown { // a person must see the whole value, and a part of a secret would not be masked
		return refusal("%s: the value has %d bytes, and a person can approve at most %d (%s.approval)", w.Target, len(shown), maxShown, w.Setting)
	}
	digest := sha256.Sum256([]byte(w.Setting + "\x00" + w.Target + "\x00" + w.Shown))
	resp, err := req.Invoke(ctx, tea.Invocation{Action: "human.ask", Key: "approve-" + hex.EncodeToString(digest[:8]), Params: map[string]any{
		"question": fmt.Sprintf("Write %s to %s?", shown, w.Target),
		"choices":  []any{"approve", "deny"},
	}})
	if err != nil {
		return NotSent(err)
	}
	var result struct {
		Answer any `json:"answer"`
	}
	if err := resp.Result.Decode(&result); err != nil {
		return NotSent(err)
	}
	if result.Answer != "approve" {
		return refusal("a person denied writing %s to %s", w.Shown, w.Target)
	}
	return nil
}

// maxShown is the maximum size in bytes of a value in a question.
const maxShown = 20000

// visible returns a text without characters that are invisible or change the order in
// which others are displayed.
func visible(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

func refusal(format string, args ...any) error {
	return NotSent(tea.Errorf(tea.PermissionDenied, format, args...))
}

// limit is the error of a value that the settings do not allow.
type limit struct{ error }

// Limit returns an error for a value that the settings do not allow.
func Limit(format string, args ...any) error { return limit{fmt.Errorf(format, args...)} }

// Invalid returns the error of a write whose parameters are wrong: permission_denied if err is of [Limit], otherwise
// validation_error.
func Invalid(target string, err error) error {
	kind := tea.ValidationError
	if errors.As(err, new(limit)) {
		kind = tea.PermissionDenied
	}
	return NotSent(tea.Errorf(kind, "%s: %w", target, err))
}

// effect is the name of the error detail with the effect of a failed write.
const effect = "effect"

// NotSent returns the error of a write that was not sent and can be repeated.
func NotSent(err error) *tea.Error { return with(err, "none") }

// Unknown returns an error of a write whose effect is not known. It is not retried.
func Unknown(err error) *tea.Error {
	e := with(err, "unknown")
	e.Retryable = false
	e.Message += "; it is not known whether the write took effect"
	return e
}

// Refused returns an error of a write that the other side refused.
func Refused(err error) *tea.Error { return with(err, "refused") }

// Failed returns an error of a command that has ended and reports that it failed.
func Failed(err error) *tea.Error { return with(err, "failed") }

func with(err error, what string) *tea.Error {
	e := *tea.AsError(err)
	e.Details = maps.Clone(e.Details)
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[effect] = what
	// See tea.Error.NotSent; the outcome of a refused or failed write is known.
	e.Details["not_sent"] = what == "none"
	if what == "refused" || what == "failed" {
		e.Details["outcome_known"] = true
	}
	return &e
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// numbers returns a value or a list of values as numbers; nil if one is not a number.
func numbers(v any) []float64 {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	out := make([]float64, len(list))
	for i, v := range list {
		if out[i], ok = Number(v); !ok {
			return nil
		}
	}
	return out
}

// Number returns a number or truth value of the value model as a number.
func Number(v any) (float64, bool) {
	if b, ok := v.(bool); ok {
		if b {
			return 1, true
		}
		return 0, true
	}
	return value.Float(v)
}
