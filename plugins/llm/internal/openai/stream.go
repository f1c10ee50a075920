package openai

import (
	"context"
	"errors"
	"io"
	"mime"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
	"github.com/the-edge-agent/tea/plugins/llm/internal/transport"
	tea "github.com/the-edge-agent/tea/sdk"
)

// readStream reads a streamed answer and gives out its pieces as they come.
func readStream(ctx context.Context, reply transport.Reply, limit time.Duration, emit func(chat.Delta)) (*chat.Answer, error) {
	if kind, _, _ := mime.ParseMediaType(reply.Header.Get("Content-Type")); kind == "application/json" {
		return readUnstreamed(reply, emit)
	}
	a := newAssembly(emit)
	done, err := readEvents(reply, limit, a)
	switch {
	case err == nil:
	case a.finish != "" && ctx.Err() == nil:
		// The answer is whole; only the usage that follows it was lost.
	case errors.Is(err, io.EOF) && !a.seen:
		return nil, tea.Errorf(tea.ConnectionError, "the stream ended without an answer")
	default:
		return nil, transport.Interrupted(err, a.pieces.Count)
	}
	if !done && a.finish == "" {
		if !reply.Delimited() {
			return nil, transport.Interrupted(io.ErrUnexpectedEOF, a.pieces.Count)
		}
		a.finish = chat.FinishUnknown
	}
	return a.answer(), nil
}

// readEvents reads to the end. done says that the server announced the end.
func readEvents(reply transport.Reply, limit time.Duration, a *assembly) (done bool, err error) {
	events := stream.NewEvents(reply.Body)
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
		case string(event.Data) == "[DONE]":
			if !a.seen {
				return true, io.EOF
			}
			return true, nil
		}
		if event.Name == "error" {
			return false, transport.StreamError(event.Data)
		}
		chunk, err := decode(stream.Escape(event.Data))
		if err != nil {
			return false, err
		}
		if a.add(chunk) {
			clock.Start()
		}
	}
}

// readUnstreamed serves where a server ignores the wish for a stream.
func readUnstreamed(reply transport.Reply, emit func(chat.Delta)) (*chat.Answer, error) {
	answer, err := readAnswer(reply)
	if err != nil {
		return nil, err
	}
	if answer.Text != "" || answer.Reasoning != "" {
		emit(chat.Delta{Text: answer.Text, Reasoning: answer.Reasoning})
	}
	return answer, nil
}
