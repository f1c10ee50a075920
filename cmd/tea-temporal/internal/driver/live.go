package driver

import (
	"context"
	"strings"
	"time"

	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"

	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// heartbeatInterval is the interval of heartbeats, and liveInterval the interval while there
	// are new tokens; silentAfter is how long Temporal waits for a heartbeat before another
	// worker repeats the call.
	heartbeatInterval = 4 * time.Second
	liveInterval      = 100 * time.Millisecond
	silentAfter       = 20 * time.Second
)

// maxLive bounds the text in a heartbeat.
const maxLive = 32 << 10

// live is the heartbeat of a running activity, for followers of the run: the last part
// of its streamed text. Heartbeats are not in the history.
type live struct {
	Path string `json:"path"`
	Node string `json:"node"`
	// From is the number of tokens before Tokens.
	From   int      `json:"from"`
	Tokens []string `json:"tokens"`
	// Waiting is the reason why the call is blocked.
	Waiting string `json:"waiting,omitempty"`
}

// heartbeat sends heartbeats until ctx is done.
func (h *remoteHost) heartbeat(ctx context.Context, c tea.Call) {
	// A repeated attempt would stream the same text again.
	streams := c.Attempt <= 1 && h.info.Attempt == 1
	tick := time.NewTicker(liveInterval)
	defer tick.Stop()
	var report *live
	last, seen, waiting := time.Now(), 0, ""
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if streams {
			if l, n := h.live(c, seen); n > seen {
				report, seen = l, n
				last = time.Time{}
			}
		}
		if reason := h.reason(); reason != waiting {
			waiting, last = reason, time.Time{}
			l := live{Waiting: reason}
			if report != nil {
				l = *report
				l.Waiting = reason
			}
			report = &l
		}
		if time.Since(last) < heartbeatInterval {
			continue
		}
		last = time.Now()
		if report == nil {
			activity.RecordHeartbeat(ctx)
		} else {
			activity.RecordHeartbeat(ctx, report)
		}
	}
}

// waits sets the reason why the call is blocked.
func (h *remoteHost) waits(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = reason
}

func (h *remoteHost) reason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting
}

// live returns the heartbeat if there are notices after the first seen, and their number.
func (h *remoteHost) live(c tea.Call, seen int) (*live, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.notices) == seen {
		return nil, seen
	}
	l := &live{Path: c.Node, Node: activityName(c.Node)}
	var tokens []string
	for _, n := range h.notices {
		if n.Kind == "token" {
			tokens = append(tokens, n.Text)
		}
	}
	size := 0
	for l.From = len(tokens); l.From > 0 && size+len(tokens[l.From-1]) <= maxLive; l.From-- {
		size += len(tokens[l.From-1])
	}
	l.Tokens = tokens[l.From:]
	return l, len(h.notices)
}

// ahead records the tokens of a running call that the follower of the run has passed
// on.
type ahead struct {
	path string
	// tokens is their number; lost is set if some were missed.
	tokens int
	lost   bool
	// text is the part that the run has not emitted yet.
	text string
}

// emitLive passes on the tokens of running calls.
func (r *follower) emitLive(calls []*workflow.PendingActivityInfo) {
	if r.options.Events == nil {
		return
	}
	for _, c := range calls {
		if c.GetHeartbeatDetails() == nil {
			continue
		}
		var l live
		if r.data.FromPayloads(c.GetHeartbeatDetails(), &l) != nil || l.Path == "" {
			continue
		}
		if r.ahead == nil {
			r.ahead = map[string]*ahead{}
		}
		a := r.ahead[c.GetActivityId()]
		if a == nil {
			a = &ahead{path: l.Path}
			r.ahead[c.GetActivityId()] = a
		}
		if a.lost = a.lost || l.From > a.tokens; a.lost {
			continue // the rest comes with the result
		}
		for _, text := range l.Tokens[min(a.tokens-l.From, len(l.Tokens)):] {
			a.tokens++
			a.text += text
			r.streamed++
			r.options.Events(flow.Event{
				Seq: r.last + r.streamed, Time: time.Now(), RunID: r.run, Type: flow.EventToken, Node: l.Node, Path: l.Path,
				Fields: []flow.Field{{Key: "text", Value: text}},
			})
		}
	}
}

// wasStreamed reports whether an event was passed on before the run emitted it.
func (r *follower) wasStreamed(e *flow.Event) bool {
	if e.Type != flow.EventToken || r.streamed == 0 {
		return false
	}
	text := e.Text("text")
	for _, a := range r.ahead {
		if a.path == e.Path && text != "" && strings.HasPrefix(a.text, text) {
			a.text = a.text[len(text):]
			r.streamed--
			return true
		}
	}
	return false
}
