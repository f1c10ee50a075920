package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// readStream reads a streamed answer and emits its pieces as they arrive. A server that
// ignores the request for a stream sends one complete answer as JSON, which counts as
// an event. The content type is not reliable: some servers declare a stream as JSON.
func readStream(ctx context.Context, reply httpapi.Reply, limit time.Duration, emit func(chat.Delta)) (*chat.Answer, error) {
	a := newAssembly(reply.MaxAnswer(), emit)
	done, err := readEvents(reply, limit, a)
	switch {
	case err == nil:
	case a.finish != "" && ctx.Err() == nil:
		// The answer is complete; only its usage was lost.
	case errors.Is(err, io.EOF) && !a.seen && reply.IsPage():
		return nil, httpapi.WebPage()
	case errors.Is(err, io.EOF) && !a.seen:
		return nil, tea.Errorf(tea.ConnectionError, "the stream ended without an answer")
	default:
		return nil, httpapi.Interrupted(err, a.pieces.Emitted)
	}
	if a.finish == "" {
		if !done && !reply.Delimited() {
			return nil, httpapi.Interrupted(io.ErrUnexpectedEOF, a.pieces.Emitted)
		}
		a.finish = chat.FinishUnknown
	}
	return a.answer(), nil
}

// readEvents reads to the end. done reports whether the server announced the end.
func readEvents(reply httpapi.Reply, limit time.Duration, a *assembly) (done bool, err error) {
	events := stream.NewEvents(reply.Stream(), reply.Limit())
	clock := reply.TokenClock(limit)
	defer clock.Pause()
	for {
		clock.Wait()
		event, err := events.Next()
		clock.Pause()
		switch {
		case err == io.EOF && a.seen:
			return false, nil
		case err != nil:
			return false, err
		}
		data := bytes.TrimSpace(event.Data)
		switch {
		case string(data) == "[DONE]":
			if !a.seen {
				return true, io.EOF
			}
			return true, nil
		case event.Name == "error":
			return false, httpapi.StreamError(data)
		case len(data) == 0, event.Name != "" && data[0] != '{':
			continue // a keep-alive
		}
		chunk, err := decode(stream.Escape(data))
		if err != nil {
			return false, err
		}
		if a.add(chunk) {
			clock.Token()
		}
		if err := a.pieces.Check(); err != nil {
			return false, err
		}
	}
}
