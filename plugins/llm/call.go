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
	x, err := c.exchange(req, p.over(c.settings.Connection), p.Fallbacks, stream)
	if err != nil {
		return nil, err
	}
	answer, err := x.askShaped(ctx, question, wanted)
	if err != nil {
		return nil, err
	}
	var data any
	if wanted != nil && len(answer.ToolCalls) == 0 {
		if answer, data, err = x.fit(ctx, question, answer, wanted, p.MaxRepairs); err != nil {
			return nil, err
		}
	}
	tools.fromWire(answer.ToolCalls)
	return x.result(answer, data), nil
}

// askShaped asks for an answer of a certain shape. A server that rejects the
// format is asked without it, and the model is told the shape instead.
func (x *exchange) askShaped(ctx context.Context, question *chat.Request, wanted *shape) (*chat.Answer, error) {
	answer, err := x.ask(ctx, question, x.stream)
	if err == nil || wanted == nil || !transport.IsRejection(err) {
		return answer, err
	}
	plain := *question
	plain.Format = nil
	plain.Messages = append([]chat.Message{wanted.instruction()}, question.Messages...)
	answer, plainErr := x.ask(ctx, &plain, x.stream)
	if plainErr != nil {
		return nil, err // the format was not the reason
	}
	question.Format = nil
	return answer, nil
}
