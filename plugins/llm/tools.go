package llm

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
)

// MaxToolRounds is the error type of llm.tools if the model still calls tools after the
// last round. It is also the finish_reason of an answer that the model only gave because
// there were no more rounds.
const MaxToolRounds tea.ErrorType = "max_tool_rounds"

// ToolsParams are the parameters of llm.tools.
type ToolsParams struct {
	Ask
	MaxToolRounds  int  `json:"max_tool_rounds,omitempty" default:"10" minimum:"1" doc:"number of rounds in which the model may call tools"`
	MaxResultBytes int  `json:"max_result_bytes,omitempty" default:"20000" minimum:"100" doc:"limit for what the model sees of a tool's result; the rest is cut off"`
	Stream         bool `json:"stream,omitempty" doc:"emit tokens as they arrive"`
}

// ToolsResult is the answer of a model that used tools.
type ToolsResult struct {
	Result
	Rounds      int            `json:"rounds" doc:"number of rounds in which the model called tools"`
	ToolResults []ToolResult   `json:"tool_results" doc:"all calls of tools, in order"`
	Messages    []chat.Message `json:"messages" doc:"the complete conversation, for the next call"`
}

// Tools is the action llm.tools.
func (c *Client) Tools(ctx context.Context, req *tea.Request, p ToolsParams) (*ToolsResult, error) {
	if len(p.Tools) == 0 {
		return nil, tea.Errorf(tea.ValidationError, "llm.tools needs tools; use llm.call without them")
	}
	if p.MaxToolRounds < 1 || p.MaxResultBytes < 1 {
		return nil, tea.Errorf(tea.ValidationError, "max_tool_rounds and max_result_bytes must be at least 1")
	}
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
	if err := tools.compile(); err != nil {
		return nil, err
	}
	tools.offer(question)
	x, err := c.exchange(req, p.Connection, p.Fallbacks, p.Stream)
	if err != nil {
		return nil, err
	}
	steps := &notedModel{exchange: x, notes: notes{host: req.Host, prefix: "llm.tools/" + req.IdempotencyKey}}
	talk := &conversation{
		call: req, model: steps, question: question, tools: tools, notes: steps.notes,
		maxRounds: p.MaxToolRounds, roundsKey: "max_tool_rounds", maxResult: p.MaxResultBytes,
	}
	return answerWithTools(ctx, talk, x, wanted, p.MaxRepairs)
}

// answerWithTools returns the result of a conversation, in the wanted form if there is
// one.
func answerWithTools(ctx context.Context, talk *conversation, x *exchange, wanted *shape, maxRepairs int) (*ToolsResult, error) {
	format := talk.question.Format
	if wanted != nil {
		// Servers that enforce a format prevent tool calls, so the model is told the
		// format; it is enforced only when an answer is repaired.
		talk.question.Format = nil
		talk.question.Messages = append([]chat.Message{wanted.instruction()}, talk.question.Messages...)
	}
	answer, rounds, err := talk.untilAnswered(ctx)
	if err != nil {
		return nil, err
	}
	var data any
	if wanted != nil {
		repair := *talk.question
		repair.Format = format
		if answer, data, err = x.repairAnswer(ctx, &repair, answer, wanted, maxRepairs); err != nil {
			return nil, err
		}
	}
	result := &ToolsResult{Result: *x.result(answer, data), Rounds: rounds, ToolResults: talk.results, Messages: talk.question.Messages}
	if result.ToolResults == nil {
		result.ToolResults = []ToolResult{}
	}
	result.Messages = append(result.Messages, result.Message)
	for _, m := range result.Messages {
		talk.tools.fromWire(m.ToolCalls)
	}
	return result, nil
}

// notedModel asks through an exchange and notes each answer before its tools run.
type notedModel struct {
	*exchange
	notes notes
}

func (m *notedModel) ask(ctx context.Context, round int, question *chat.Request) (*chat.Answer, error) {
	answer, found, err := m.notes.answer(ctx, round)
	if err != nil {
		return nil, err
	}
	x := m.exchange
	if found {
		x.model = answer.Model
		x.moveTo(answer.Target, question)
		if x.call.Attempt <= 1 {
			x.add(*answer.Usage) // earlier attempts of the node counted theirs
		}
		return answer.Answer, nil
	}
	if answer.Answer, err = x.ask(ctx, question, x.stream); err != nil {
		return nil, err
	}
	answer.Target = x.current
	return answer.Answer, m.notes.setAnswer(ctx, round, answer)
}
