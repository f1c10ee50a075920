package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Workflow is a workflow of the server.
type Workflow struct {
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	File        string    `json:"file"`
	Digest      string    `json:"digest"`
	Triggers    []Trigger `json:"triggers"`
	Running     int       `json:"running"`
	Queued      int       `json:"queued"`
	MaxRunning  int       `json:"max_running"`
	TokensToday int64     `json:"tokens_today"`
	USDToday    float64   `json:"usd_today"`
	// LastRun is the run that ended last, nil if there was none.
	LastRun *LastRun `json:"last_run,omitempty"`
	// InputSchema is the JSON Schema of the input; only [Client.Workflow] returns it.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

// LastRun is the run of a workflow that ended last. It may have been removed since.
type LastRun struct {
	ID      string    `json:"id"`
	Status  string    `json:"status"`
	EndedAt time.Time `json:"ended_at"`
}

// Trigger starts runs of a workflow.
type Trigger struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Last and Next are the times of a schedule's last and next run; a poll or stream
	// has only Last.
	Last *time.Time `json:"last,omitempty"`
	Next *time.Time `json:"next,omitempty"`
	// Problem is the reason why the trigger does not work at the moment.
	Problem string `json:"problem,omitempty"`
	// Value is the last value of a poll or stream as JSON, cut after 200 bytes. Active
	// reports whether its condition has started a run and was not reset.
	Value  string `json:"value,omitempty"`
	Active bool   `json:"active,omitempty"`
	// Paused is when a schedule was paused, nil if it is not. Skipped are the latest
	// starts that did not happen.
	Paused  *time.Time `json:"paused,omitempty"`
	Skipped []Skip     `json:"skipped,omitempty"`
}

// Skip is a start that did not happen.
type Skip struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// ScheduledTrigger is a trigger with its times in the next seven days, none while it is
// paused.
type ScheduledTrigger struct {
	Workflow string      `json:"workflow"`
	Trigger  string      `json:"trigger"`
	Last     *time.Time  `json:"last,omitempty"`
	Times    []time.Time `json:"times"`
	// More reports that there are more times than the server lists.
	More    bool       `json:"more,omitempty"`
	Paused  *time.Time `json:"paused,omitempty"`
	Skipped []Skip     `json:"skipped,omitempty"`
}

// Schedule returns the triggers of the kinds cron and every.
func (c *Client) Schedule(ctx context.Context) ([]ScheduledTrigger, error) {
	var list struct {
		Triggers []ScheduledTrigger `json:"triggers"`
	}
	err := c.call(ctx, http.MethodGet, "/v1/schedule", nil, nil, nil, &list)
	return list.Triggers, err
}

// Pause pauses a trigger of the schedule until [Client.Unpause]; a restart of the server
// does not resume it.
func (c *Client) Pause(ctx context.Context, workflow, trigger string) error {
	return c.trigger(ctx, workflow, trigger, "pause", new(ScheduledTrigger))
}

// Unpause resumes a paused trigger. Times that have passed start runs only if the
// trigger has catch_up one or all.
func (c *Client) Unpause(ctx context.Context, workflow, trigger string) error {
	return c.trigger(ctx, workflow, trigger, "resume", new(ScheduledTrigger))
}

// RunNow starts the run of a trigger of the schedule now. Its next time stays as it is.
func (c *Client) RunNow(ctx context.Context, workflow, trigger string) (*Run, error) {
	run := new(Run)
	return run, c.trigger(ctx, workflow, trigger, "run", run)
}

func (c *Client) trigger(ctx context.Context, workflow, trigger, do string, out any) error {
	return c.call(ctx, http.MethodPost, "/v1/workflows/"+url.PathEscape(workflow)+"/triggers/"+url.PathEscape(trigger)+"/"+do, nil, nil, map[string]any{}, out)
}

// FileProblem is a problem of a file on the server. Its workflow may still be served in a
// version from before the mistake.
type FileProblem struct {
	File   string `json:"file"`
	Detail string `json:"detail"`
}

// Workflows returns the workflows of the server, and the problems of its files.
func (c *Client) Workflows(ctx context.Context) ([]Workflow, []FileProblem, error) {
	var list struct {
		Workflows []Workflow    `json:"workflows"`
		Problems  []FileProblem `json:"problems"`
	}
	err := c.call(ctx, http.MethodGet, "/v1/workflows", nil, nil, nil, &list)
	return list.Workflows, list.Problems, err
}

// Workflow returns a workflow with the schema of its input.
func (c *Client) Workflow(ctx context.Context, name string) (*Workflow, error) {
	w := new(Workflow)
	return w, c.call(ctx, http.MethodGet, "/v1/workflows/"+url.PathEscape(name), nil, nil, nil, w)
}

// DayUsage is the usage of a workflow's runs on a day.
type DayUsage struct {
	// Day is a date like 2026-11-23, in the time zone of the server.
	Day      string `json:"day"`
	Workflow string `json:"workflow"`
	// Runs is the number of runs that have ended, Failed of those that failed or were
	// parked.
	Runs   int64   `json:"runs"`
	Failed int64   `json:"failed"`
	Tokens int64   `json:"tokens"`
	USD    float64 `json:"usd"`
	// Seconds is the running time, without waits for an answer or the next attempt.
	Seconds float64 `json:"seconds"`
}

// Usage returns the usage of runs, including removed ones, newest day first.
func (c *Client) Usage(ctx context.Context) ([]DayUsage, error) {
	var list struct {
		Days []DayUsage `json:"days"`
	}
	err := c.call(ctx, http.MethodGet, "/v1/usage", nil, nil, nil, &list)
	return list.Days, err
}
