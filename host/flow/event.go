package flow

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/sdk/value"
)

// EventType is the kind of an [Event].
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
	EventDryRun      EventType = "dry_run"
	EventRunEnd      EventType = "run_end"

	// EventFile names a file that an action has written.
	EventFile EventType = "file"

	// EventValues has the params and the result of a node. Only the log of a run has it,
	// directly after the node_end or node_error with the same number.
	EventValues EventType = "values"
)

// Event is one thing that happened in a run. Secrets in it are masked. It can be
// copied and used concurrently.
type Event struct {
	// Seq counts the events of a run from 1, resumptions included.
	Seq   int64
	Time  time.Time
	RunID string
	Type  EventType
	// Node and Path are empty if the event is not about a node.
	Node string
	Path string
	// Fields are specific to the type. They are shared between the receivers of
	// the event and must not be changed.
	Fields []Field
}

// Field is a member of an event. Value is in the value model of package
// sdk/value.
type Field struct {
	Key   string
	Value any
}

// Field returns the value of a field; nil if the event does not have it.
func (e Event) Field(key string) any {
	for _, f := range e.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// Text returns the value of a field that is a string, otherwise "".
func (e Event) Text(key string) string {
	text, _ := e.Field(key).(string)
	return text
}

// MarshalJSON writes the event as one flat object: its fields follow the
// common members, by name.
func (e Event) MarshalJSON() ([]byte, error) {
	dst := append(make([]byte, 0, 256), `{"seq":`...)
	dst = strconv.AppendInt(dst, e.Seq, 10)
	dst = e.Time.UTC().AppendFormat(append(dst, `,"ts":"`...), time.RFC3339Nano)
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
	byName := func(a, b Field) int { return strings.Compare(a.Key, b.Key) }
	fields := e.Fields
	if !slices.IsSortedFunc(fields, byName) {
		fields = slices.Clone(fields)
		sort.Slice(fields, func(i, j int) bool { return fields[i].Key < fields[j].Key })
	}
	for _, f := range fields {
		dst = append(value.AppendString(append(dst, ','), f.Key), ':')
		var err error
		if dst, err = value.Append(dst, f.Value); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes. The fields are in no particular order.
func (e *Event) UnmarshalJSON(text []byte) error {
	v, err := value.Decode(text)
	if err != nil {
		return err
	}
	object, _ := v.(map[string]any)
	*e = Event{}
	for key, v := range object {
		word, _ := v.(string)
		switch key {
		case "seq":
			e.Seq, _ = v.(int64)
		case "ts":
			e.Time, err = time.Parse(time.RFC3339Nano, word)
		case "run_id":
			e.RunID = word
		case "event":
			e.Type = EventType(word)
		case "node":
			e.Node = word
		case "path":
			e.Path = word
		default:
			e.Fields = append(e.Fields, Field{Key: key, Value: v})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
