package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Status is the status of a run.
type Status string

// The statuses of runs. Queued runs wait for their turn; parked runs failed too often to be
// continued without a request.
const (
	Queued  Status = "queued"
	Running Status = "running"
	Waiting Status = "waiting"
	Failed  Status = "failed"
	Stopped Status = "stopped"
	Parked  Status = "parked"
	Done    Status = "done"
)

// Ended reports whether the run continues only after a request.
func (s Status) Ended() bool { return s != Queued && s != Running }

// Run describes a run. Fields that the server has not sent are zero: [Client.Start] without
// Wait returns only the id and the status.
type Run struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	Status   Status `json:"status"`
	// Trigger is the name of the trigger that started the run, Node the last node.
	Trigger    string    `json:"trigger,omitempty"`
	Node       string    `json:"node,omitempty"`
	AcceptedAt time.Time `json:"accepted_at,omitzero"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	UpdatedAt  time.Time `json:"updated_at,omitzero"`
	// ParentRun is the run from which this one was forked.
	ParentRun string `json:"parent_run,omitempty"`
	// Question is the first question of a waiting run, in lists.
	Question string `json:"question,omitempty"`
	// Unchanged is set in lists that were asked for changes only; such a run has no
	// other members than ID, Workflow and Status.
	Unchanged bool `json:"unchanged,omitempty"`
	// Attempts is the number of times that the run was continued after a failure.
	Attempts      int       `json:"attempts,omitempty"`
	NextAttemptAt time.Time `json:"next_attempt_at,omitzero"`
	// QueuedBecause and Parked are the reasons for the status.
	QueuedBecause  string      `json:"queued_because,omitempty"`
	Parked         string      `json:"parked,omitempty"`
	Error          string      `json:"error,omitempty"`
	ErrorType      string      `json:"error_type,omitempty"`
	Failures       []Failure   `json:"failures,omitempty"`
	FailedBranches int         `json:"failed_branches,omitempty"`
	Pending        []Interrupt `json:"pending,omitempty"`
	// AnsweredBy has the token name or the link target that answered each question, and
	// AnsweredAt the time.
	AnsweredBy map[string]string    `json:"answered_by,omitempty"`
	AnsweredAt map[string]time.Time `json:"answered_at,omitempty"`
	Usage      *Usage               `json:"usage,omitempty"`
	// State is the state as JSON, without secrets.
	State json.RawMessage `json:"state,omitempty"`
	Notes []string        `json:"notes,omitempty"`
}

// Failure is a failed node or branch.
type Failure struct {
	Path      string `json:"path"`
	Branch    bool   `json:"branch,omitempty"`
	ErrorType string `json:"error_type"`
	Error     string `json:"error"`
}

// Interrupt is an interrupt at which a run waits. Interrupts of the kind ask have a question,
// which is answered by [Client.Resume] with the key ID.
type Interrupt struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Node     string `json:"node"`
	Path     string `json:"path"`
	Question string `json:"question,omitempty"`
	// Context and Attachments are what the person should know.
	Context     json.RawMessage   `json:"context,omitempty"`
	Attachments []json.RawMessage `json:"attachments,omitempty"`
	Schema      json.RawMessage   `json:"schema,omitempty"`
	Choices     []json.RawMessage `json:"choices,omitempty"`
	Default     json.RawMessage   `json:"default,omitempty"`
	AskedAt     time.Time         `json:"asked_at,omitzero"`
	Deadline    time.Time         `json:"deadline,omitzero"`
	OnTimeout   string            `json:"on_timeout,omitempty"`
}

// Node is one execution of a node.
type Node struct {
	Path      string    `json:"path"`
	Node      string    `json:"node"`
	Uses      string    `json:"uses,omitempty"`
	Status    string    `json:"status"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// Fields are the fields of its last event, such as duration_ms, usage, error.
	Fields map[string]json.RawMessage `json:"fields"`
	// Retries are the failed attempts that were retried.
	Retries []NodeRetry `json:"retries,omitempty"`
	// Params and Result are JSON with masked secrets; nil if they are not stored.
	Params      json.RawMessage `json:"params,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Logs        []NodeLog       `json:"logs,omitempty"`
	OmittedLogs int             `json:"omitted_logs,omitempty"`
}

// NodeRetry is a failed attempt of a node, and the wait after it.
type NodeRetry struct {
	At        time.Time `json:"at"`
	Attempt   int       `json:"attempt"`
	Error     string    `json:"error"`
	ErrorType string    `json:"error_type"`
	WaitMS    float64   `json:"wait_ms"`
}

// NodeLog is a message of a node.
type NodeLog struct {
	At      time.Time       `json:"at"`
	Level   string          `json:"level"`
	Message string          `json:"message"`
	Fields  json.RawMessage `json:"fields,omitempty"`
}

// Usage is the usage of a run.
type Usage struct {
	Steps     int     `json:"steps"`
	Tokens    int64   `json:"tokens"`
	USD       float64 `json:"usd"`
	ToolCalls int     `json:"tool_calls"`
}

// Start is a request to start a run.
type Start struct {
	// Input is the input: a map, or a struct with JSON tags; nil is none.
	Input any
	// Key, if not empty, makes the request idempotent: requests with the same key
	// start one run.
	Key string
	// Wait is how long the server waits for the end of the run before it answers, at most
	// 10 minutes. See also [Client.Wait].
	Wait time.Duration
}

// Start starts a run of a workflow. When it returns without an error, the run is on the
// server's disk and survives a crash. After an error that is not an [*Error] the run may have
// started; repeat the request with the same Key.
func (c *Client) Start(ctx context.Context, workflow string, s Start) (*Run, error) {
	header := http.Header{}
	if s.Key != "" {
		header["idempotency-key"] = []string{s.Key} // net/http repeats a request if the header has the canonical spelling
	}
	body := map[string]any{}
	if s.Input != nil {
		body["input"] = s.Input
	}
	run := new(Run)
	return run, c.call(ctx, http.MethodPost, "/v1/workflows/"+url.PathEscape(workflow)+"/runs", waiting(s.Wait), header, body, run)
}

// Node returns the last execution of a node of a run, by the name of the node or the path
// of the execution.
func (c *Client) Node(ctx context.Context, id, at string) (*Node, error) {
	n := new(Node)
	return n, c.call(ctx, http.MethodGet, runPath(id)+"/node", url.Values{"at": {at}}, nil, nil, n)
}

// Source is the text of the workflow with which a run began.
type Source struct {
	File string `json:"file"`
	// Changed reports that the file differs from that of the run, so that there is no text.
	Changed bool   `json:"changed,omitempty"`
	Text    string `json:"text,omitempty"`
	// Lines are the first lines of the nodes. The key of a node in the body of another is
	// OUTER/INNER.
	Lines map[string]int `json:"lines,omitempty"`
}

// Source returns the text of the workflow with which a run began.
func (c *Client) Source(ctx context.Context, id string) (*Source, error) {
	s := new(Source)
	return s, c.call(ctx, http.MethodGet, runPath(id)+"/source", nil, nil, nil, s)
}

// RunFile is a file that a run has written.
type RunFile struct {
	// File is the path that the action reported.
	File string `json:"file"`
	// Path is the node execution that wrote the file last, and Call its action.
	Path      string    `json:"path"`
	Call      string    `json:"call"`
	WrittenAt time.Time `json:"written_at"`
	// Written is the number of bytes that the last call wrote.
	Written int64 `json:"written,omitempty"`
	// Secrets reports whether the parameters of the call contained secrets.
	Secrets bool `json:"secrets,omitempty"`
	// Size is the current size. It is nil if the file cannot be read; Note has the reason.
	Size *int64 `json:"size,omitempty"`
	Note string `json:"note,omitempty"`
}

// Files returns the files that a run has written.
func (c *Client) Files(ctx context.Context, id string) ([]RunFile, error) {
	var list struct{ Files []RunFile }
	err := c.call(ctx, http.MethodGet, runPath(id)+"/files", nil, nil, nil, &list)
	return list.Files, err
}

// File returns the content of a file that a run has written, with masked secrets.
func (c *Client) File(ctx context.Context, id, file string) ([]byte, error) {
	var content json.RawMessage
	return content, c.call(ctx, http.MethodGet, runPath(id)+"/files/content", url.Values{"file": {file}}, nil, nil, &content)
}

func waiting(d time.Duration) url.Values {
	if d <= 0 {
		return nil
	}
	return url.Values{"wait": {strconv.FormatFloat(d.Seconds(), 'f', -1, 64)}}
}

func runPath(id string) string { return "/v1/runs/" + url.PathEscape(id) }

// Run returns a run, with its state if state is true.
func (c *Client) Run(ctx context.Context, id string, state bool) (*Run, error) {
	query := url.Values{}
	if state {
		query.Set("state", "true")
	}
	run := new(Run)
	return run, c.call(ctx, http.MethodGet, runPath(id), query, nil, nil, run)
}

// Wait waits until a run has ended or waits, and returns it with its state. It continues if
// the connection is lost.
func (c *Client) Wait(ctx context.Context, id string) (*Run, error) {
	last := int64(0)
	for {
		before := last
		for e, err := range c.Events(ctx, id, last) {
			if err != nil {
				return nil, err
			}
			last = e.Seq
		}
		run, err := c.Run(ctx, id, true)
		for pause := minPause; last > 0 && ctx.Err() == nil && unavailable(err); pause = min(2*pause, maxPause) {
			if err = sleep(ctx, pause); err == nil {
				run, err = c.Run(ctx, id, true)
			}
		}
		if err != nil || run.Status.Ended() {
			return run, err
		}
		if last > before {
			continue
		}
		if err := sleep(ctx, minPause); err != nil { // its next event is imminent
			return nil, err
		}
	}
}

// unavailable reports whether the server could not be reached, or refused a request for
// now.
func unavailable(err error) bool {
	_, refused := errors.AsType[*Error](err)
	_, lost := errors.AsType[*url.Error](err)
	return (refused || lost) && passes(err)
}

// State returns the state of a run as JSON, without secrets.
func (c *Client) State(ctx context.Context, id string) (json.RawMessage, error) {
	var state json.RawMessage
	return state, c.call(ctx, http.MethodGet, runPath(id)+"/state", nil, nil, nil, &state)
}

// Graph draws the workflow of a run with the statuses of its nodes, as SVG.
func (c *Client) Graph(ctx context.Context, id string) ([]byte, error) {
	var svg json.RawMessage
	return svg, c.call(ctx, http.MethodGet, runPath(id)+"/graph.svg", nil, nil, nil, &svg)
}

// Filter selects runs; a zero field selects all.
type Filter struct {
	Workflow string
	Status   Status
	Trigger  string
	// Search selects runs by words, each of which must occur in the id, the workflow, the
	// trigger, the error or the beginning of the input.
	Search string
	// Since and Until limit the time of acceptance; Until is exclusive.
	Since, Until time.Time
}

// pageSize is the number of runs per page.
const pageSize = 200

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// Runs returns runs, newest first. It requests the next page when needed. It ends after an
// error.
func (c *Client) Runs(ctx context.Context, f Filter) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		query := url.Values{"limit": {strconv.Itoa(pageSize)}}
		for name, value := range map[string]string{"workflow": f.Workflow, "status": string(f.Status), "trigger": f.Trigger, "q": f.Search, "since": stamp(f.Since), "until": stamp(f.Until)} {
			if value != "" {
				query.Set(name, value)
			}
		}
		for {
			var page struct {
				Runs []Run  `json:"runs"`
				Next string `json:"next"`
			}
			if err := c.call(ctx, http.MethodGet, "/v1/runs", query, nil, nil, &page); err != nil {
				yield(Run{}, err)
				return
			}
			for _, run := range page.Runs {
				if !yield(run, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query.Set("after", page.Next)
		}
	}
}

// Resume is a request to continue a run.
type Resume struct {
	// Answers are the answers to questions, by the id, path or node of the interrupt. Without
	// any, a run that waits before or after a node continues.
	Answers map[string]any `json:"answers,omitempty"`
	// Input is merged into the state.
	Input any `json:"input,omitempty"`
	// RetryFailed runs failed branches and items again.
	RetryFailed bool `json:"retry_failed,omitempty"`
	// Migrate continues with the current version of the workflow.
	Migrate bool `json:"migrate,omitempty"`
	// Wait is as in [Start].
	Wait time.Duration `json:"-"`
}

// Resume continues a run that waits or has failed.
func (c *Client) Resume(ctx context.Context, id string, r Resume) (*Run, error) {
	run := new(Run)
	return run, c.call(ctx, http.MethodPost, runPath(id)+"/resume", waiting(r.Wait), nil, r, run)
}

// Retry runs the failed parts of a run again, even if it is parked.
func (c *Client) Retry(ctx context.Context, id string, wait time.Duration) (*Run, error) {
	run := new(Run)
	return run, c.call(ctx, http.MethodPost, runPath(id)+"/retry", waiting(wait), nil, nil, run)
}

// Cancel stops a run that is running, queued, parked or waiting.
func (c *Client) Cancel(ctx context.Context, id string) (*Run, error) {
	run := new(Run)
	return run, c.call(ctx, http.MethodPost, runPath(id)+"/cancel", nil, nil, nil, run)
}

// Fork copies a run up to a step, the number of a record or the path of a node, and continues
// the copy with changes to its state; nil means none.
func (c *Client) Fork(ctx context.Context, id, step string, input any, wait time.Duration) (*Run, error) {
	body := map[string]any{"at": step}
	if input != nil {
		body["input"] = input
	}
	run := new(Run)
	return run, c.call(ctx, http.MethodPost, runPath(id)+"/fork", waiting(wait), nil, body, run)
}
