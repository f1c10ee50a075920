package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// maxSeveral is how many runs a request changes.
const maxSeveral = 500

// Outcome is what a request for several runs has done with one of them.
type Outcome struct {
	ID string `json:"id"`
	// Status is the status afterwards, or "deleted".
	Status Status `json:"status,omitempty"`
	// Error is why the run was not changed, "" if it was.
	Error string `json:"error,omitempty"`
}

// CancelAll stops runs and returns the outcome for each, in the order of ids: a failure of
// one does not prevent the others. It sends a request for every 500 runs. After an error,
// the outcomes are those of the requests before.
func (c *Client) CancelAll(ctx context.Context, ids []string) ([]Outcome, error) {
	return c.several(ctx, "cancel", ids)
}

// RetryAll runs the failed parts of runs again, and is otherwise like [Client.CancelAll].
func (c *Client) RetryAll(ctx context.Context, ids []string) ([]Outcome, error) {
	return c.several(ctx, "retry", ids)
}

// DeleteAll removes runs that have ended, and is otherwise like [Client.CancelAll].
func (c *Client) DeleteAll(ctx context.Context, ids []string) ([]Outcome, error) {
	return c.several(ctx, "delete", ids)
}

func (c *Client) several(ctx context.Context, do string, ids []string) (all []Outcome, err error) {
	for len(ids) > 0 {
		part := ids[:min(len(ids), maxSeveral)]
		ids = ids[len(part):]
		var list struct {
			Runs []Outcome `json:"runs"`
		}
		if err := c.call(ctx, http.MethodPost, "/v1/runs/"+do, nil, nil, map[string]any{"ids": part}, &list); err != nil {
			return all, err
		}
		all = append(all, list.Runs...)
	}
	return all, nil
}

// Comparison has the differences between two runs, without secrets.
type Comparison struct {
	A ComparedRun `json:"a"`
	B ComparedRun `json:"b"`
	// Input and State are the differences of the inputs and of the last states.
	Input []StateChange `json:"input"`
	State []StateChange `json:"state"`
	// Path has the executions of nodes, in the order of the first run.
	Path []ComparedNode `json:"path"`
	// Omitted is the number of differences that are not listed.
	Omitted int `json:"omitted,omitempty"`
}

// ComparedRun is one of two runs that are compared.
type ComparedRun struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	// Digest identifies the version of the workflow.
	Digest     string    `json:"digest"`
	Status     Status    `json:"status"`
	StartedAt  time.Time `json:"started_at"`
	DurationMS int64     `json:"duration_ms"`
	Usage      Usage     `json:"usage"`
	Error      string    `json:"error,omitempty"`
}

// StateChange is a difference between two states.
type StateChange struct {
	// Key is the path in the state, such as readings[2].celsius.
	Key string `json:"key"`
	// Change is added, removed or changed.
	Change string `json:"change"`
	// From is the value in the first state as JSON, To the value in the second one.
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
}

// ComparedNode is the last execution at a path in each run, nil if there is none.
type ComparedNode struct {
	Path string         `json:"path"`
	A    *ComparedVisit `json:"a,omitempty"`
	B    *ComparedVisit `json:"b,omitempty"`
}

// ComparedVisit is an execution of a node in a comparison.
type ComparedVisit struct {
	Status     string  `json:"status"`
	DurationMS float64 `json:"duration_ms"`
	Tokens     int64   `json:"tokens,omitempty"`
}

// Compare compares a run with another one.
func (c *Client) Compare(ctx context.Context, id, with string) (*Comparison, error) {
	d := new(Comparison)
	return d, c.call(ctx, http.MethodGet, runPath(id)+"/compare", url.Values{"with": {with}}, nil, nil, d)
}
