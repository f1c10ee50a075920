package tea

import (
	"context"

	"github.com/the-edge-agent/tea/sdk/schema"
)

// Handler does an action's work. It must return soon after ctx is done; ctx
// carries the call's deadline. The error should be an [*Error]; any other
// error becomes one of type internal_error.
type Handler func(ctx context.Context, req *Request) (*Response, error)

// Action is one thing a workflow can use, by its name.
type Action struct {
	// Name is "namespace.verb", such as "llm.call".
	Name string
	// Summary is one sentence for the reader of `tea actions`.
	Summary string
	// Params and Result describe the JSON objects that go in and out; nil
	// allows anything. A workflow is checked against Params before it runs.
	Params, Result *schema.Schema
	// Streaming says that the action emits tokens or progress while it works.
	Streaming bool
	// Idempotent says that a call may be repeated after a crash although its
	// first try may have done its work.
	Idempotent bool
	// Handle does the work. It is called concurrently.
	Handle Handler

	check *ParamCheck // of Params; nil until an instance makes one
}

// Info is the part of the action that is data.
func (a Action) Info() ActionInfo {
	return ActionInfo{Name: a.Name, Summary: a.Summary, Params: a.Params, Result: a.Result, Streaming: a.Streaming, Idempotent: a.Idempotent}
}

// ActionInfo describes an action to whoever calls it.
type ActionInfo struct {
	Name       string         `json:"name"`
	Summary    string         `json:"summary,omitempty"`
	Params     *schema.Schema `json:"params,omitempty"`
	Result     *schema.Schema `json:"result,omitempty"`
	Streaming  bool           `json:"streaming,omitempty"`
	Idempotent bool           `json:"idempotent,omitempty"`
}

// Option changes an action made by [NewAction] or [NewMethod].
type Option func(*Action)

// Streaming marks an action that emits tokens or progress.
func Streaming() Option { return func(a *Action) { a.Streaming = true } }

// Idempotent marks an action that may be repeated after a crash.
func Idempotent() Option { return func(a *Action) { a.Idempotent = true } }
