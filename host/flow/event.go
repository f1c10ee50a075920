package flow

import (
	"strconv"
	"time"

	"github.com/the-edge-agent/tea/sdk/value"
)

// EventType says what happened.
type EventType string

// The types of events. docs/reference/events.schema.json describes their
// fields. More types can follow: ignore those that you do not support.
const (
	EventRunStart    EventType = "run_start"
	EventNodeStart   EventType = "node_start"
	EventNodeEnd     EventType = "node_end"
	EventNodeError   EventType = "node_error"
	EventRetry       EventType = "retry"
	EventBranchStart EventType = "branch_start"
	EventBranchEnd   EventType = "branch_end"
	EventLoop        EventType = "loop"
	EventToken       EventType = "token"
	EventLog         EventType = "log"
	EventInterrupt   EventType = "interrupt"
	EventCheckpoint  EventType = "checkpoint"
	EventRunEnd      EventType = "run_end"
)

// Event is one thing that happened in a run. Fields are the event's own,
// masked of secrets; they are shared and must not be changed.
type Event struct {
	// Seq counts the events of a run from 1, resumptions included.
	Seq   int64
	Time  time.Time
	RunID string
	Type  EventType
	// Node and Path are empty where the event is not about a node.
	Node   string
	Path   string
	Fields map[string]any
}

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) {
	dst := append(make([]byte, 0, 160), `{"seq":`...)
	dst = strconv.AppendInt(dst, e.Seq, 10)
	dst = append(append(dst, `,"ts":"`...), e.Time.UTC().Format(time.RFC3339Nano)...)
	dst = append(dst, `","run_id":`...)
	dst = value.AppendString(dst, e.RunID)
	dst = append(dst, `,"event":`...)
	dst = value.AppendString(dst, string(e.Type))
	if e.Node != "" {
		dst = append(dst, `,"node":`...)
		dst = value.AppendString(dst, e.Node)
	}
	if e.Path != "" {
		dst = append(dst, `,"path":`...)
		dst = value.AppendString(dst, e.Path)
	}
	if len(e.Fields) > 0 {
		fields, err := value.Encode(e.Fields)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, ','), fields[1:len(fields)-1]...)
	}
	return append(dst, '}'), nil
}
