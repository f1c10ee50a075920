package mcpserver

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/the-edge-agent/tea/host/flow"
)

// maxNotes is how many notifications wait for a slow client. The run does not
// wait; further notifications are dropped.
const maxNotes = 256

// notifier sends the events of a run to the client of a call: progress if the
// client has asked for it, and log lines as log messages.
type notifier struct {
	session *mcp.ServerSession
	token   any
	// count is the number of progress events.
	count float64
	notes chan note
	done  chan struct{}
}

// note is one notification; log is nil for progress.
type note struct {
	progress float64
	message  string
	log      *mcp.LoggingMessageParams
}

// newNotifier returns a notifier. The caller closes it before it sends the result
// of the call, after which the protocol allows no progress.
func newNotifier(ctx context.Context, req *mcp.CallToolRequest) *notifier {
	n := &notifier{session: req.Session, token: req.Params.GetProgressToken(), notes: make(chan note, maxNotes), done: make(chan struct{})}
	go func() {
		defer close(n.done)
		for e := range n.notes {
			n.send(ctx, e)
		}
	}()
	return n
}

// close waits until all notifications are sent.
func (n *notifier) close() {
	close(n.notes)
	<-n.done
}

// send ignores errors: they mean that the client is gone, and its run ends.
func (n *notifier) send(ctx context.Context, e note) {
	if ctx.Err() != nil {
		return
	}
	if e.log != nil {
		_ = n.session.Log(ctx, e.log)
		return
	}
	_ = n.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: n.token, Progress: e.progress, Message: e.message})
}

// event queues the notification for an event.
func (n *notifier) event(e flow.Event) {
	var next note
	if e.Type == flow.EventLog {
		next.log = &mcp.LoggingMessageParams{Level: logLevel(e.Text("level")), Logger: e.Path, Data: e.Text("message")}
		if n.token != nil {
			next.log.Meta = mcp.Meta{"progressToken": n.token} // the protocol does not associate log messages with calls
		}
	} else {
		next.message = describeEvent(e)
		if next.message == "" || n.token == nil {
			return
		}
		n.count++
		next.progress = n.count
	}
	select {
	case n.notes <- next:
	default:
	}
}

// describeEvent returns the progress message for an event; "" if it is not
// progress.
func describeEvent(e flow.Event) string {
	switch e.Type {
	case flow.EventNodeStart:
		return e.Path + " started"
	case flow.EventNodeEnd:
		return e.Path + " finished"
	case flow.EventNodeError:
		return e.Path + " failed: " + e.Text("error")
	case flow.EventRetry:
		return e.Path + " is tried again"
	case flow.EventLoop:
		return fmt.Sprintf("%s: iteration %v", e.Path, e.Field("iteration"))
	case flow.EventInterrupt:
		return e.Path + " waits for an answer"
	}
	return ""
}

// logLevel returns the level of a log message in MCP.
func logLevel(level string) mcp.LoggingLevel {
	switch level {
	case "debug", "error":
		return mcp.LoggingLevel(level)
	case "warn", "warning":
		return "warning"
	}
	return "info"
}
