package chat

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// Assembly assembles an answer from the events of a stream, or from one that is the whole
// answer.
type Assembly interface {
	// Event consumes an event. It reports whether the event contains a piece of the
	// answer, and whether it is the last one.
	Event(name string, data []byte) (grew, last bool, err error)
	// Complete reports whether the answer is complete if the stream ends here.
	Complete() bool
}

// ReadAnswer passes an answer to a. If pieces emit, it is a stream; limit is the time
// between two tokens.
func ReadAnswer(reply httpapi.Reply, limit time.Duration, pieces *Pieces, a Assembly) error {
	if pieces.Emit != nil {
		return readEvents(reply, limit, pieces, a)
	}
	raw, err := reply.ReadAll()
	if err != nil {
		return err
	}
	if _, _, err := a.Event("", stream.Escape(raw)); err != nil {
		return err
	}
	if !a.Complete() {
		return httpapi.NotAnAnswer(raw, "an answer", errors.New("it has another form"))
	}
	return pieces.Check()
}

// readEvents passes the events of a streamed answer to a, up to the last one. pieces are
// those of a. A server that ignores the request for a stream sends its answer as JSON,
// which counts as an event without a name.
func readEvents(reply httpapi.Reply, limit time.Duration, pieces *Pieces, a Assembly) error {
	events := stream.NewEvents(reply.Stream(), reply.Limit())
	clock := reply.TokenClock(limit)
	defer clock.Pause()
	for seen := false; ; seen = true {
		clock.Wait()
		event, err := events.Next()
		clock.Pause()
		switch {
		case err == io.EOF && a.Complete():
			return nil
		case err == io.EOF && !seen && reply.IsPage():
			return httpapi.WebPage()
		case err == io.EOF && !seen:
			return tea.Errorf(tea.ConnectionError, "the stream ended without an answer")
		case err == io.EOF:
			err = io.ErrUnexpectedEOF
		}
		if err != nil && a.Complete() {
			return nil // only the end of the stream was lost
		}
		var grew, last bool
		if err == nil {
			if data := bytes.TrimSpace(event.Data); len(data) > 0 && string(data) != "[DONE]" {
				grew, last, err = a.Event(event.Name, stream.Escape(data))
			}
		}
		if err == nil {
			err = pieces.Check()
		}
		if err != nil {
			return httpapi.Interrupted(err, pieces.Emitted)
		}
		if grew {
			clock.Token()
		}
		if last {
			return nil
		}
	}
}
