package ollama

import (
	"cmp"
	"encoding/json"
	"io"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// record is a line of a streamed answer, or a complete answer.
type record struct {
	Model           string          `json:"model"`
	Message         turn            `json:"message"`
	Done            bool            `json:"done"`
	DoneReason      string          `json:"done_reason"`
	PromptEvalCount int             `json:"prompt_eval_count"`
	EvalCount       int             `json:"eval_count"`
	Error           json.RawMessage `json:"error"`
}

// turn is a piece of an answer. extra are the members that the protocol does not
// define, and thinking, which are sent back with the turn.
type turn struct {
	Content   string          `json:"content"`
	Thinking  string          `json:"thinking"`
	ToolCalls []chat.ToolCall `json:"tool_calls"`
	extra     map[string]any
}

func (t *turn) UnmarshalJSON(data []byte) (err error) {
	type plain turn
	*t = turn{}
	if err := json.Unmarshal(data, (*plain)(t)); err != nil || string(data) == "null" {
		return err
	}
	t.extra, err = chat.Unknown(data, "role", "content", "tool_calls")
	return err
}

// assembly assembles an answer from its records.
type assembly struct {
	pieces chat.Pieces
	answer chat.Answer
}

// readAnswer reads records up to the one marked as last. An answer that is not
// streamed is a stream of one record.
func readAnswer(reply httpapi.Reply, limit time.Duration, emit func(chat.Delta)) (*chat.Answer, error) {
	a := &assembly{pieces: chat.Pieces{Emit: emit, Max: reply.MaxAnswer()}}
	lines := stream.NewLines(reply.Stream(), reply.Limit())
	clock := reply.TokenClock(limit)
	defer clock.Pause()
	for {
		clock.Wait()
		line, err := lines.Next()
		clock.Pause()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, httpapi.Interrupted(err, a.pieces.Emitted)
		}
		r, err := decode(stream.Escape(line))
		if err != nil {
			return nil, httpapi.Interrupted(err, a.pieces.Emitted)
		}
		if a.add(r) {
			clock.Token()
		}
		if err := a.pieces.Check(); err != nil {
			return nil, httpapi.Interrupted(err, a.pieces.Emitted)
		}
		if r.Done {
			return a.finish(r), nil
		}
	}
}

func decode(line []byte) (*record, error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, httpapi.NotAnAnswer(line, "an answer", err)
	}
	if httpapi.IsError(r.Error) {
		return nil, httpapi.StreamError(r.Error)
	}
	return &r, nil
}

// add consumes a record and reports whether it contains a piece of the answer.
func (a *assembly) add(r *record) (grew bool) {
	if r.Model != "" {
		a.answer.Model = r.Model
	}
	for _, call := range r.Message.ToolCalls {
		call.Arguments = stream.Join(call.Arguments)
		a.answer.ToolCalls = append(a.answer.ToolCalls, call)
	}
	a.pieces.Size += chat.SizeOfCalls(r.Message.ToolCalls)
	a.pieces.AddExtra(r.Message.extra)
	a.pieces.Add(r.Message.Content, r.Message.Thinking)
	return r.Message.Content != "" || r.Message.Thinking != "" || len(r.Message.ToolCalls) > 0
}

func (a *assembly) finish(last *record) *chat.Answer {
	a.pieces.End(&a.answer)
	if usage := (chat.Usage{InputTokens: last.PromptEvalCount, OutputTokens: last.EvalCount}).Normalize(); usage.TotalTokens > 0 {
		a.answer.Usage = &usage
	}
	a.answer.Finish(cmp.Or(last.DoneReason, chat.FinishUnknown))
	return &a.answer
}

func toEmbeddings(raw []byte) (*chat.Embeddings, error) {
	var answer struct {
		Model           string          `json:"model"`
		Embeddings      []chat.Vector   `json:"embeddings"`
		PromptEvalCount int             `json:"prompt_eval_count"`
		Error           json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, httpapi.NotAnAnswer(raw, "embeddings", err)
	}
	if httpapi.IsError(answer.Error) {
		return nil, httpapi.StreamError(answer.Error)
	}
	e := &chat.Embeddings{Model: answer.Model}
	for _, v := range answer.Embeddings {
		e.Vectors = append(e.Vectors, v)
	}
	if n := answer.PromptEvalCount; n > 0 {
		e.Usage = &chat.Usage{InputTokens: n, TotalTokens: n}
	}
	return e, nil
}
