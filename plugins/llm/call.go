package llm

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/transport"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Call is the action llm.call.
func (c *Client) Call(ctx context.Context, req *tea.Request, p CallParams) (*Result, error) {
	return c.answer(ctx, req, &p.Ask, p.Stream)
}

// Stream is the action llm.stream.
func (c *Client) Stream(ctx context.Context, req *tea.Request, p StreamParams) (*Result, error) {
	return c.answer(ctx, req, &p.Ask, true)
}

func (c *Client) answer(ctx context.Context, req *tea.Request, p *Ask, stream bool) (*Result, error) {
	question, err := p.request(req.Action, &c.settings)
	if err != nil {
		return nil, err
	}
	wanted, err := newShape(question.Format)
	if err != nil {
		return nil, err
	}
	tools, err := newToolset(ctx, req.Host, p.Tools)
	if err != nil {
		return nil, err
	}
	tools.offer(question)
	q, err := c.inquire(ctx, req, p.Connection, stream)
	if err != nil {
		return nil, err
	}
	answer, err := q.askShaped(ctx, question, wanted)
	if err != nil {
		return nil, err
	}
	var data any
	if wanted != nil && len(answer.ToolCalls) == 0 {
		if answer, data, err = q.fit(ctx, question, answer, wanted, p.MaxRepairs); err != nil {
			return nil, err
		}
	}
	tools.fromWire(answer.ToolCalls)
	return q.result(answer, data), nil
}

// askShaped asks for an answer of a certain shape. A server that refuses to be
// told the shape is asked without, and the model is told instead.
func (q *inquiry) askShaped(ctx context.Context, question *chat.Request, wanted *shape) (*chat.Answer, error) {
	answer, err := q.ask(ctx, question, q.stream)
	if err == nil || wanted == nil || !transport.IsRefusal(err) {
		return answer, err
	}
	plain := *question
	plain.Format = nil
	plain.Messages = append([]chat.Message{wanted.instruction()}, question.Messages...)
	answer, plainErr := q.ask(ctx, &plain, q.stream)
	if plainErr != nil {
		return nil, err // the format was not the reason
	}
	question.Format = nil
	return answer, nil
}
