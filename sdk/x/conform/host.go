package conform

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Host is a [tea.Host] for tests: it answers for other actions and records an action's
// requests. The zero value is ready to use: no actions, no notes. It is safe for
// concurrent use; its exported fields must not change after a call has begun.
type Host struct {
	// Actions answer [tea.Host.Invoke] by name. Parameters are in the value
	// model; results can be anything that encoding/json can marshal.
	Actions map[string]func(ctx context.Context, params any) (any, error)
	// Infos describe actions. An action without one is described only by its name.
	Infos map[string]tea.ActionInfo
	// Budget is the number of tokens of the budget: when it is used up, reports of
	// usage return a budget_exceeded error; 0 means no limit.
	Budget int64
	// Render evaluates templates for [tea.Request.Invoke].
	Render func(params any, roots map[string]any) (any, error)
	// Notes are notes of an earlier attempt.
	Notes map[string]any

	mu    sync.Mutex
	rec   Record
	calls []tea.Invocation
}

// Record is the record of a [Host], each list in the order of arrival.
type Record struct {
	Tokens   []string
	Logs     []Log
	Progress []Progress
	// Invoked are the calls of other actions.
	Invoked []Invoked
	// Usage are the reports of usage.
	Usage []tea.Usage
	// Notes are all notes by key, including the initial ones of the Host.
	Notes map[string]any
}

// Text returns all tokens in one string.
func (r Record) Text() string { return strings.Join(r.Tokens, "") }

// Log is one log record.
type Log struct {
	Level   slog.Level
	Message string
	Fields  map[string]any
}

// Progress is one progress report.
type Progress struct {
	Fraction float64
	Message  string
}

// Invoked is one call of another action.
type Invoked struct {
	Action string
	Params any
}

// Recorded returns a copy of the record so far.
func (h *Host) Recorded() Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	notes := maps.Clone(h.Notes)
	if notes == nil {
		notes = map[string]any{}
	}
	maps.Copy(notes, h.rec.Notes)
	return Record{
		Tokens:   slices.Clone(h.rec.Tokens),
		Logs:     slices.Clone(h.rec.Logs),
		Progress: slices.Clone(h.rec.Progress),
		Invoked:  slices.Clone(h.rec.Invoked),
		Usage:    slices.Clone(h.rec.Usage),
		Notes:    notes,
	}
}

// Invocations returns the calls of other actions so far with their keys and roots.
// Parameters and output are in the value model, with unevaluated templates.
func (h *Host) Invocations() []tea.Invocation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Invoke records the call and answers from Actions. A missing action is a not_found error.
func (h *Host) Invoke(ctx context.Context, action string, params any) (*tea.Response, error) {
	return h.InvokeAs(ctx, tea.Invocation{Action: action, Params: params})
}

// InvokeAs is Invoke with a key and roots. Templates are evaluated by Render; if it is nil,
// they are left unchanged. The result of a call with a key is stored in a note and returned
// for later calls with the key.
func (h *Host) InvokeAs(ctx context.Context, call tea.Invocation) (*tea.Response, error) {
	action := call.Action
	given, err := tea.AsPayload(call.Params).Value()
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "parameters of %s: %v", action, err)
	}
	output, err := tea.AsPayload(call.Output).Value()
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "output of %s: %v", action, err)
	}
	h.mu.Lock()
	h.rec.Invoked = append(h.rec.Invoked, Invoked{Action: action, Params: given})
	call.Params, call.Output = given, output
	h.calls = append(h.calls, call)
	h.mu.Unlock()
	if note, done, _ := h.Note(ctx, tea.CallNote+call.Key); done && call.Key != "" {
		recorded, _ := note.Value()
		return tea.Respond(recorded.(map[string]any)["result"]), nil
	}
	answer, ok := h.Actions[action]
	if !ok {
		return nil, tea.Errorf(tea.NotFound, "no action %s", action)
	}
	if call.Roots != nil && h.Render != nil {
		if given, err = h.Render(given, call.Roots); err != nil {
			return nil, tea.AsError(err)
		}
	}
	result, err := answer(ctx, value.Clone(given))
	if err == nil && output != nil && h.Render != nil {
		roots := maps.Clone(call.Roots)
		if roots == nil {
			roots = map[string]any{}
		}
		roots["result"] = result
		result, err = h.Render(output, roots)
	}
	if err == nil && call.Key != "" {
		err = h.SetNote(ctx, tea.CallNote+call.Key, map[string]any{"result": result, "started_at": testTime, "ended_at": testTime})
	}
	if err != nil {
		return nil, tea.AsError(err)
	}
	return tea.Respond(result), nil
}

// testTime is the time of every call with a key.
const testTime = "2001-02-03T04:05:06.000Z"

// Describe answers from Infos and Actions.
func (h *Host) Describe(_ context.Context, action string) (*tea.ActionInfo, error) {
	if info, ok := h.Infos[action]; ok {
		return &info, nil
	}
	if _, ok := h.Actions[action]; ok {
		return &tea.ActionInfo{Name: action}, nil
	}
	return nil, tea.Errorf(tea.NotFound, "no action %s", action)
}

// Log records a log record; its fields are converted to the value model.
func (h *Host) Log(_ context.Context, level slog.Level, message string, fields map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rec.Logs = append(h.rec.Logs, Log{Level: level, Message: message, Fields: value.Fields(fields)})
}

// Token records a token.
func (h *Host) Token(_ context.Context, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rec.Tokens = append(h.rec.Tokens, text)
}

// Progress records a progress report.
func (h *Host) Progress(_ context.Context, fraction float64, message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rec.Progress = append(h.rec.Progress, Progress{Fraction: fraction, Message: message})
}

// Note reads a note.
func (h *Host) Note(_ context.Context, key string) (tea.Payload, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if note, ok := h.rec.Notes[key]; ok {
		return tea.ValuePayload(note), true, nil
	}
	if note, ok := h.Notes[key]; ok {
		return tea.ValuePayload(note), true, nil
	}
	return tea.Payload{}, false, nil
}

// SetNote stores a note, in the value model.
func (h *Host) SetNote(_ context.Context, key string, note any) error {
	inModel, err := tea.AsPayload(note).Value()
	if err != nil {
		return tea.Errorf(tea.ValidationError, "note %s: %v", key, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rec.Notes == nil {
		h.rec.Notes = map[string]any{}
	}
	h.rec.Notes[key] = inModel
	return nil
}

// ReportUsage records a report. It returns an error if the Budget is spent.
func (h *Host) ReportUsage(_ context.Context, u tea.Usage) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rec.Usage = append(h.rec.Usage, u)
	var used int64
	for _, report := range h.rec.Usage {
		used += report.Tokens
	}
	if h.Budget > 0 && used >= h.Budget {
		return tea.Errorf(tea.BudgetExceeded, "budget reached: tokens (%d of %d)", used, h.Budget)
	}
	return nil
}
