//go:build js

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"syscall/js"

	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/jspromise"
)

// page has the callbacks of the JavaScript side.
type page struct {
	js.Value
	*outbox
}

// outbox holds the unsent events. A message costs more than an event, so the events of
// a run are sent together as soon as the host waits.
type outbox struct {
	mu     sync.Mutex
	filled []*events
}

// events are the events of one run.
type events struct {
	key  js.Value
	text []byte // a JSON array that is not closed yet
}

// maxEvents bounds the events in a message, unless a single event is larger.
const maxEvents = 64 << 10

// emit queues an event. It is sent before the host waits, asks or answers the page.
func (p page) emit(to *events, e flow.Event) {
	text, err := e.MarshalJSON()
	if err != nil { // an event has only values of the model
		panic(err)
	}
	p.mu.Lock()
	idle := len(p.filled) == 0
	if len(to.text) == 0 {
		p.filled = append(p.filled, to)
		to.text = append(to.text, '[')
	} else {
		to.text = append(to.text, ',')
	}
	to.text = append(to.text, text...)
	full := len(to.text) > maxEvents
	p.mu.Unlock()
	switch {
	case full:
		p.flush()
	case idle:
		go p.flush() // when the other goroutines wait
	}
}

// flush sends all events.
func (p page) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, to := range p.filled {
		p.Call("event", to.key, string(append(to.text, ']')))
		to.text = to.text[:0]
	}
	clear(p.filled)
	p.filled = p.filled[:0]
}

// pageAction is an action that JavaScript implements.
type pageAction struct {
	Name       string          `json:"name"`
	Summary    string          `json:"summary"`
	Params     json.RawMessage `json:"params"`
	Idempotent bool            `json:"idempotent"`
}

func (a pageAction) action(p page) (tea.Action, error) {
	action := tea.Action{Name: a.Name, Summary: a.Summary, Idempotent: a.Idempotent}
	if len(a.Params) > 0 {
		action.Params = new(schema.Schema)
		if err := json.Unmarshal(a.Params, action.Params); err != nil {
			return action, fmt.Errorf("the parameters of the action %s: %w", a.Name, err)
		}
	}
	action.Handle = func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
		params, err := req.Params.JSON()
		if err != nil {
			return nil, err
		}
		p.flush()
		text, err := jspromise.Await(ctx, p.Call("action", a.Name, string(params), req.IdempotencyKey))
		if err != nil {
			return nil, err
		}
		var answer struct {
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Type      tea.ErrorType  `json:"type"`
				Message   string         `json:"message"`
				Retryable bool           `json:"retryable"`
				Details   map[string]any `json:"details"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(text.String()), &answer); err != nil {
			return nil, fmt.Errorf("the result of the action %s: %w", a.Name, err)
		}
		if e := answer.Error; e != nil {
			failure := tea.Errorf(e.Type, "%s", e.Message)
			failure.Retryable, failure.Details = e.Retryable, e.Details
			return nil, failure
		}
		return &tea.Response{Result: tea.RawPayload(answer.Result)}, nil
	}
	return action, nil
}
