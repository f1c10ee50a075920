package llm

import (
	"context"
	"slices"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
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
	x, err := c.exchange(req, p.Connection, p.Fallbacks, stream)
	if err != nil {
		return nil, err
	}
	var instruction []chat.Message
	if wanted != nil {
		instruction = append(instruction, wanted.instruction())
	}
	answer, err := x.askFormatted(ctx, question, x.stream, instruction...)
	if err != nil {
		return nil, err
	}
	var data any
	if wanted != nil && len(answer.ToolCalls) == 0 {
		if answer, data, err = x.repairAnswer(ctx, question, answer, wanted, p.MaxRepairs); err != nil {
			return nil, err
		}
	}
	tools.fromWire(answer.ToolCalls)
	return x.result(answer, data), nil
}

// askFormatted asks for an answer in the format of question. If the server rejects the
// format, it asks again without it, after the instruction; later requests omit the
// format, too.
func (x *exchange) askFormatted(ctx context.Context, question *chat.Request, stream bool, instruction ...chat.Message) (*chat.Answer, error) {
	answer, err := x.ask(ctx, question, stream)
	if err == nil || question.Format == nil || !httpapi.IsRejection(err) {
		return answer, err
	}
	plain := *question
	plain.Format = nil
	plain.Messages = slices.Concat(instruction, question.Messages)
	answer, plainErr := x.ask(ctx, &plain, stream)
	if plainErr != nil {
		return nil, err // the format was not the reason
	}
	question.Format = nil
	return answer, nil
}
