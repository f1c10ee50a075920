package ollama

import (
	"encoding/json"
	"io"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
	"github.com/the-edge-agent/tea/plugins/llm/internal/transport"
)

// record is one line of a streamed answer, or all of one that is not.
type record struct {
	Model   string `json:"model"`
	Message struct {
		Content   string          `json:"content"`
		Thinking  string          `json:"thinking"`
		ToolCalls []chat.ToolCall `json:"tool_calls"`
	} `json:"message"`
	Done            bool            `json:"done"`
	DoneReason      string          `json:"done_reason"`
	PromptEvalCount int             `json:"prompt_eval_count"`
	EvalCount       int             `json:"eval_count"`
	Error           json.RawMessage `json:"error"`
}

// assembly puts an answer together from its records.
type assembly struct {
	pieces chat.Pieces
	answer chat.Answer
}

// readAnswer reads records until the one that says that it is the last. An
// answer that is not streamed is a stream of one record.
func readAnswer(reply transport.Reply, limit time.Duration, emit func(chat.Delta)) (*chat.Answer, error) {
	a := &assembly{pieces: chat.Pieces{Emit: emit}}
	lines := stream.NewLines(reply.Stream())
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
			return nil, transport.Interrupted(err, a.pieces.Count)
		}
		r, err := decode(stream.Escape(line))
		if err != nil {
			return nil, transport.Interrupted(err, a.pieces.Count)
		}
		if a.add(r) {
			clock.Start()
		}
		if r.Done {
			return a.finish(r), nil
		}
	}
}

func decode(line []byte) (*record, error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, transport.NoAnswer(line, "what is no answer", err)
	}
	if transport.IsError(r.Error) {
		return nil, transport.StreamError(r.Error)
	}
	return &r, nil
}

// add takes a record in and tells whether it held a piece of the answer.
func (a *assembly) add(r *record) (grew bool) {
	if r.Model != "" {
		a.answer.Model = r.Model
	}
	for _, call := range r.Message.ToolCalls {
		call.Arguments = stream.Join(call.Arguments)
		a.answer.ToolCalls = append(a.answer.ToolCalls, call)
	}
	a.pieces.Add(r.Message.Content, r.Message.Thinking)
	return r.Message.Content != "" || r.Message.Thinking != "" || len(r.Message.ToolCalls) > 0
}

func (a *assembly) finish(last *record) *chat.Answer {
	a.answer.Text, a.answer.Reasoning = a.pieces.End()
	if n := last.PromptEvalCount + last.EvalCount; n > 0 {
		a.answer.Usage = &chat.Usage{InputTokens: last.PromptEvalCount, OutputTokens: last.EvalCount, TotalTokens: n}
	}
	a.answer.Finish(last.DoneReason)
	return &a.answer
}

func toEmbeddings(raw []byte) (*chat.Embeddings, error) {
	var answer struct {
		Model           string          `json:"model"`
		Embeddings      [][]float64     `json:"embeddings"`
		PromptEvalCount int             `json:"prompt_eval_count"`
		Error           json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, transport.NoAnswer(raw, "what are no embeddings", err)
	}
	if transport.IsError(answer.Error) {
		return nil, transport.StreamError(answer.Error)
	}
	e := &chat.Embeddings{Model: answer.Model, Vectors: answer.Embeddings}
	if n := answer.PromptEvalCount; n > 0 {
		e.Usage = &chat.Usage{InputTokens: n, TotalTokens: n}
	}
	return e, nil
}
