package report

import (
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

func text(e flow.Event, key string) string {
	s, _ := e.Fields[key].(string)
	return s
}

func integer(e flow.Event, key string) int64 {
	n, _ := e.Fields[key].(int64)
	return n
}

func duration(e flow.Event) time.Duration {
	ms, _ := e.Fields["duration_ms"].(float64)
	return time.Duration(ms * float64(time.Millisecond))
}

// question is what an interrupt waits for.
func question(e flow.Event) string {
	if q := text(e, "question"); q != "" {
		return q
	}
	return "interrupt " + text(e, "kind")
}

// compact is a value as JSON on one line.
func compact(v any) string {
	raw, err := value.Encode(v)
	if err != nil {
		return "?"
	}
	return string(raw)
}
