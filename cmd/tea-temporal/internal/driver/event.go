package driver

import (
	"encoding/json"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

// event is an event in a query result.
type event struct {
	Seq    int64           `json:"seq"`
	Time   time.Time       `json:"ts"`
	Type   flow.EventType  `json:"event"`
	Node   string          `json:"node,omitempty"`
	Path   string          `json:"path,omitempty"`
	Fields json.RawMessage `json:"fields,omitempty"` // a list of keys and values
}

func newEvent(e flow.Event) (event, error) {
	out := event{Seq: e.Seq, Time: e.Time, Type: e.Type, Node: e.Node, Path: e.Path}
	if len(e.Fields) == 0 {
		return out, nil
	}
	list := make([]any, 0, 2*len(e.Fields))
	for _, f := range e.Fields {
		list = append(list, f.Key, f.Value)
	}
	var err error
	out.Fields, err = value.Encode(list)
	return out, err
}

// size estimates the size of the event as JSON.
func (e *event) size() int { return 100 + len(e.Node) + len(e.Path) + len(e.Fields) }

func (e *event) flow(runID string) (flow.Event, error) {
	out := flow.Event{Seq: e.Seq, Time: e.Time, RunID: runID, Type: e.Type, Node: e.Node, Path: e.Path}
	if len(e.Fields) == 0 {
		return out, nil
	}
	v, err := value.Decode(e.Fields)
	if err != nil {
		return out, err
	}
	list, _ := v.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		key, _ := list[i].(string)
		out.Fields = append(out.Fields, flow.Field{Key: key, Value: list[i+1]})
	}
	return out, nil
}
