package conform

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Probe returns a bundle whose actions exercise every part of the protocol. It is the
// reference for plugins in other languages: a plugin with the same probe actions is tested
// by the complete suite, others by the checks that apply to any plugin.
func Probe() tea.Bundle {
	return tea.Bundle{
		Name:        "probe",
		Version:     "1.0.0",
		Description: "Exercises every part of the plugin protocol.",
		Settings:    map[string]*schema.Schema{"probe": nil},
		Open: func(_ context.Context, settings tea.Settings) (any, error) {
			if strings.Contains(string(settings["probe"]), "refuse") {
				return nil, tea.Errorf(tea.ValidationError, "settings.probe: refused, as asked")
			}
			return &probe{settings: settings}, nil
		},
		Actions: []tea.Action{
			{Name: "probe.echo", Summary: "Returns its parameters.", Handle: probeEcho, Idempotent: true},
			tea.NewAction("probe.greet", "Needs a name.", probeGreet),
			tea.NewAction("probe.fail", "Fails with the given error.", probeFail),
			tea.NewAction("probe.panic", "Panics.", probePanic),
			tea.NewMethod("probe.wait", "Emits a token and waits until it is canceled.", (*probe).wait, tea.Streaming()),
			tea.NewMethod("probe.waiting", "Counts the running calls of probe.wait.", (*probe).count),
			{Name: "probe.big", Summary: "Returns a JSON text of the given size in bytes.", Handle: probeBig},
			tea.NewAction("probe.stream", "Emits tokens, progress and a log record.", probeStream, tea.Streaming()),
			tea.NewAction("probe.invoke", "Calls another action.", probeInvoke),
			tea.NewAction("probe.describe", "Describes another action.", probeDescribe),
			tea.NewAction("probe.note", "Reads a note and stores another under its key.", probeNote),
			tea.NewAction("probe.usage", "Reports usage, then returns the error of the report.", probeUsage),
			{Name: "probe.call", Summary: "Returns the caller.", Handle: probeCall},
			{Name: "probe.settings", Summary: "Returns the settings.", Handle: probeSettings},
			tea.NewAction("probe.invoke_as", "Calls another action with a key and templates.", probeInvokeAs),
			tea.NewMethod("probe.keep", "Keeps a value in memory and returns the one before.", (*probe).keep),
		},
	}
}

// probe is the bundle's instance.
type probe struct {
	settings tea.Settings
	waiting  atomic.Int64

	mu   sync.Mutex
	kept any // in the value model
}

type keepParams struct {
	Value any `json:"value"`
}

type keepResult struct {
	Before any `json:"before"`
}

func (p *probe) keep(_ context.Context, _ *tea.Request, params keepParams) (keepResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.kept
	p.kept = params.Value
	return keepResult{Before: before}, nil
}

// Export implements tea.Handover.
func (p *probe) Export(_ context.Context, w io.Writer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := tea.ValuePayload(p.kept).JSON()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// Import implements tea.Handover.
func (p *probe) Import(_ context.Context, r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept, err = value.Decode(text)
	return err
}

func probeEcho(_ context.Context, req *tea.Request) (*tea.Response, error) {
	v, err := req.Params.Value()
	if err != nil {
		return nil, err
	}
	return tea.Respond(v), nil
}

type greetParams struct {
	Name  string `json:"name" doc:"who is greeted"`
	Times int    `json:"times,omitempty" default:"1" minimum:"1"`
}

type textResult struct {
	Text string `json:"text"`
}

func probeGreet(_ context.Context, _ *tea.Request, p greetParams) (textResult, error) {
	return textResult{Text: strings.Repeat("Hello "+p.Name+"!", p.Times)}, nil
}

type failParams struct {
	Type         string         `json:"type"`
	Message      string         `json:"message"`
	Retryable    bool           `json:"retryable,omitempty"`
	RetryAfterMS int64          `json:"retry_after_ms,omitempty"`
	Source       string         `json:"source,omitempty"`
	Details      map[string]any `json:"details,omitempty"`
}

func probeFail(_ context.Context, _ *tea.Request, p failParams) (struct{}, error) {
	return struct{}{}, &tea.Error{
		Type: tea.ErrorType(p.Type), Message: p.Message, Retryable: p.Retryable,
		RetryAfter: time.Duration(p.RetryAfterMS) * time.Millisecond, Source: p.Source, Details: p.Details,
	}
}

func probePanic(context.Context, *tea.Request, struct{}) (struct{}, error) { panic("as asked") }

func (p *probe) wait(ctx context.Context, req *tea.Request, _ struct{}) (struct{}, error) {
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	req.Host.Token(ctx, "waiting")
	<-ctx.Done()
	return struct{}{}, ctx.Err()
}

type countResult struct {
	Count int64 `json:"count"`
}

func (p *probe) count(context.Context, *tea.Request, struct{}) (countResult, error) {
	return countResult{Count: p.waiting.Load()}, nil
}

// probeBig builds the JSON text itself, because encoding this much would take too long.
func probeBig(_ context.Context, req *tea.Request) (*tea.Response, error) {
	var p struct{ Bytes int }
	if err := req.Params.Decode(&p); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%w", err)
	}
	const frame = len(`{"text":""}`)
	text := strings.Repeat("x", max(p.Bytes-frame, 0))
	return &tea.Response{Result: tea.RawPayload([]byte(`{"text":"` + text + `"}`))}, nil
}

type streamParams struct {
	Tokens int `json:"tokens" minimum:"0"`
}

func probeStream(ctx context.Context, req *tea.Request, p streamParams) (countResult, error) {
	for i := range p.Tokens {
		req.Host.Token(ctx, strconv.Itoa(i))
		req.Host.Progress(ctx, float64(i+1)/float64(p.Tokens), "token "+strconv.Itoa(i))
	}
	req.Host.Log(ctx, slog.LevelWarn, "streamed", map[string]any{"tokens": p.Tokens, "none": nil})
	return countResult{Count: int64(p.Tokens)}, nil
}

type invokeParams struct {
	Action string          `json:"action"`
	Params json.RawMessage `json:"params,omitempty"`
}

type invokeResult struct {
	Result any `json:"result"`
}

func probeInvoke(ctx context.Context, req *tea.Request, p invokeParams) (invokeResult, error) {
	resp, err := req.Host.Invoke(ctx, p.Action, tea.RawPayload(p.Params))
	if err != nil {
		return invokeResult{}, err
	}
	result, err := resp.Result.Value()
	return invokeResult{Result: result}, err
}

type invokeAsParams struct {
	Action  string         `json:"action"`
	Params  any            `json:"params,omitempty"`
	Key     string         `json:"key,omitempty"`
	Attempt int            `json:"attempt,omitempty"`
	Roots   map[string]any `json:"roots,omitempty"`
	Output  any            `json:"output,omitempty"`
}

func probeInvokeAs(ctx context.Context, req *tea.Request, p invokeAsParams) (invokeResult, error) {
	resp, err := req.Invoke(ctx, tea.Invocation(p))
	if err != nil {
		return invokeResult{}, err
	}
	result, err := resp.Result.Value()
	return invokeResult{Result: result}, err
}

type describeParams struct {
	Action string `json:"action"`
}

func probeDescribe(ctx context.Context, req *tea.Request, p describeParams) (tea.ActionInfo, error) {
	info, err := req.Host.Describe(ctx, p.Action)
	if err != nil {
		return tea.ActionInfo{}, err
	}
	return *info, nil
}

type noteParams struct {
	Key  string `json:"key"`
	Note any    `json:"note"`
}

type noteResult struct {
	Found bool `json:"found"`
	Note  any  `json:"note"`
}

func probeNote(ctx context.Context, req *tea.Request, p noteParams) (noteResult, error) {
	old, found, err := req.Host.Note(ctx, p.Key)
	if err != nil {
		return noteResult{}, err
	}
	result := noteResult{Found: found}
	if result.Note, err = old.Value(); err != nil {
		return noteResult{}, err
	}
	return result, req.Host.SetNote(ctx, p.Key, p.Note)
}

type usageParams struct {
	Tokens int64   `json:"tokens"`
	USD    float64 `json:"usd"`
}

type usageResult struct {
	ErrorType string `json:"error_type"`
}

func probeUsage(ctx context.Context, req *tea.Request, p usageParams) (usageResult, error) {
	if failure := tea.AsError(req.Usage(ctx, tea.Usage{Tokens: p.Tokens, USD: p.USD})); failure != nil {
		return usageResult{ErrorType: string(failure.Type)}, nil
	}
	return usageResult{}, nil
}

func probeCall(_ context.Context, req *tea.Request) (*tea.Response, error) {
	return tea.Respond(map[string]any{
		"run_id": req.RunID, "node": req.Node, "attempt": int64(req.Attempt), "idempotency_key": req.IdempotencyKey,
		"traceparent": req.Traceparent, "tracestate": req.Tracestate,
	}), nil
}

func probeSettings(_ context.Context, req *tea.Request) (*tea.Response, error) {
	settings := map[string]any{}
	for key, raw := range req.Instance.(*probe).settings {
		v, err := value.Decode(raw)
		if err != nil {
			return nil, err
		}
		settings[key] = v
	}
	return tea.Respond(settings), nil
}
