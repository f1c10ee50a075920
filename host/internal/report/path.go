package report

import (
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/internal/engine"
	"github.com/the-edge-agent/tea/sdk/value"
)

// outer is the path around a path: of the branch, the pass, the item or the
// node that it is in; "" at the top.
func outer(path string) string {
	if i := strings.LastIndexAny(path, "/>["); i > 0 {
		return path[:i]
	}
	return ""
}

// inside tells whether a path is inside another one.
func inside(path, scope string) bool {
	return len(path) > len(scope) && strings.HasPrefix(path, scope) && strings.IndexByte("/>[~", path[len(scope)]) >= 0
}

// label is a path's last part as a person reads it.
func label(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		path = path[i+1:]
	}
	if name, visit, again := strings.Cut(path, "#"); again {
		return name + " #" + visit
	}
	return path
}

func text(e engine.Event, key string) string {
	s, _ := e.Fields[key].(string)
	return s
}

func integer(e engine.Event, key string) int64 {
	n, _ := e.Fields[key].(int64)
	return n
}

func duration(e engine.Event) time.Duration {
	ms, _ := e.Fields["duration_ms"].(float64)
	return time.Duration(ms * float64(time.Millisecond))
}

// question is what an interrupt waits for.
func question(e engine.Event) string {
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
