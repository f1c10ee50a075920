package runview

import (
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

// maxLogs is how many log messages of a node are shown.
const maxLogs = 1000

// Node is one execution of a node, built from the events of its run. Secrets are masked.
type Node struct {
	Path      string    `json:"path"`
	Node      string    `json:"node"`
	Uses      string    `json:"uses,omitempty"`
	Status    string    `json:"status"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// Fields are the fields of the event that ended the execution, such as duration_ms,
	// usage and error.
	Fields map[string]any `json:"fields"`
	// Retries are the failed attempts that were retried.
	Retries []Retry `json:"retries,omitempty"`
	// Params and Result are nil if there are none, or if they are not stored.
	Params any `json:"params,omitempty"`
	Result any `json:"result,omitempty"`
	// Logs are the last messages, and Omitted is the number of earlier ones.
	Logs    []Log `json:"logs,omitempty"`
	Omitted int   `json:"omitted_logs,omitempty"`
}

// Retry is a failed attempt, and the wait before the next one.
type Retry struct {
	At      time.Time `json:"at"`
	Attempt any       `json:"attempt"`
	Error   string    `json:"error"`
	Type    string    `json:"error_type"`
	WaitMS  any       `json:"wait_ms"`
}

// Log is a message of a node.
type Log struct {
	At      time.Time `json:"at"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
	Fields  any       `json:"fields,omitempty"`
}

// FindNode returns the last execution with a path or a node name; nil if there is none.
// events calls a function with each event of the run.
func FindNode(name string, events func(fn func(line []byte) error) error) (*Node, error) {
	var byPath, byName *Node
	err := events(func(line []byte) error {
		var e flow.Event
		if err := e.UnmarshalJSON(line); err != nil {
			return err
		}
		if e.Type == flow.EventRunStart || e.Type == flow.EventRunEnd {
			byPath.cutOff()
			byName.cutOff()
		}
		switch name {
		case e.Path:
			byPath = byPath.add(e)
		case e.Node:
			byName = byName.add(e)
		}
		return nil
	})
	if byPath != nil {
		return byPath, err
	}
	return byName, err
}

// cutOff marks an execution that was running when the run ended or, after a kill,
// began again.
func (n *Node) cutOff() {
	if n != nil && n.Status == string(flow.Running) {
		n.Status = string(flow.Stopped)
	}
}

// add adds an event to its execution, or begins the next one.
func (n *Node) add(e flow.Event) *Node {
	begins := e.Type == flow.EventNodeStart && (n == nil || n.Path != e.Path || n.Status != string(flow.Waiting)) || e.Field("skipped") == true
	if begins || n == nil || n.Path != e.Path {
		n = &Node{Path: e.Path, Node: e.Node, Status: string(flow.Running), StartedAt: e.Time, Fields: map[string]any{}}
	}
	switch e.Type {
	case flow.EventNodeStart:
		n.Uses, n.Status = e.Text("uses"), string(flow.Running)
	case flow.EventNodeEnd, flow.EventNodeError:
		n.Status, n.EndedAt = string(flow.Done), e.Time
		if e.Type == flow.EventNodeError {
			n.Status = string(flow.Failed)
		} else if e.Field("skipped") == true {
			n.Status = "skipped"
		}
		for _, f := range e.Fields {
			n.Fields[f.Key] = f.Value
		}
	case flow.EventValues:
		n.Params, n.Result = e.Field("params"), e.Field("result")
	case flow.EventInterrupt:
		n.Status = string(flow.Waiting)
	case flow.EventRetry:
		n.Retries = append(n.Retries, Retry{e.Time, e.Field("attempt"), e.Text("error"), e.Text("error_type"), e.Field("wait_ms")})
	case flow.EventLog:
		if len(n.Logs) == maxLogs {
			n.Logs, n.Omitted = n.Logs[1:], n.Omitted+1
		}
		n.Logs = append(n.Logs, Log{e.Time, e.Text("level"), e.Text("message"), e.Field("fields")})
	}
	return n
}

// Rows returns the names and texts to print for the execution.
func (n *Node) Rows() [][]string {
	rows := [][]string{{"node", n.Path}, {"status", n.Status}}
	row := func(name string, v any) {
		text, is := v.(string)
		if raw, err := value.Encode(v); v != nil && !is && err == nil {
			text = string(raw)
		}
		if text != "" {
			rows = append(rows, []string{name, text})
		}
	}
	row("uses", n.Uses)
	row("error", n.Fields["error"])
	row("error type", n.Fields["error_type"])
	row("details", n.Fields["details"])
	row("started", n.StartedAt.Local().Format(time.DateTime))
	row("duration (ms)", n.Fields["duration_ms"])
	for _, r := range n.Retries {
		row("failed attempt", r.Error)
		row("waited (ms)", r.WaitMS)
	}
	row("attempts", n.Fields["attempts"])
	row("tokens", n.Fields["usage"])
	row("cost ($)", n.Fields["cost_usd"])
	for _, l := range n.Logs {
		row("log "+l.Level, l.Message)
	}
	return rows
}
