package llm

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
)

// MaxToolRounds is the type of the error of llm.tools when the model still
// wants tools after the last round. It is also the finish_reason of an answer
// that the model gave only because it had no more rounds.
const MaxToolRounds tea.ErrorType = "max_tool_rounds"

// ToolsParams are the parameters of llm.tools.
type ToolsParams struct {
	Ask
	MaxToolRounds  int  `json:"max_tool_rounds,omitempty" default:"10" minimum:"1" doc:"how often the model may call tools"`
	MaxResultBytes int  `json:"max_result_bytes,omitempty" default:"20000" minimum:"100" doc:"what is longer of a tool's result is cut off before the model sees it"`
	Stream         bool `json:"stream,omitempty" doc:"pass tokens on while they come"`
}

// ToolsResult is the answer of a model that used tools.
type ToolsResult struct {
	Result
	Rounds      int            `json:"rounds" doc:"how often the model called tools"`
	ToolResults []ToolResult   `json:"tool_results" doc:"every call of a tool, in order"`
	Messages    []chat.Message `json:"messages" doc:"the whole conversation, to go on with"`
}

// Tools is the action llm.tools.
func (c *Client) Tools(ctx context.Context, req *tea.Request, p ToolsParams) (*ToolsResult, error) {
	if len(p.Tools) == 0 {
		return nil, tea.Errorf(tea.ValidationError, "llm.tools needs tools; without any use llm.call")
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
	if err := tools.demand(p.Tools); err != nil {
		return nil, err
	}
	tools.offer(question)
	q, err := c.inquire(ctx, req, p.Connection, p.Stream)
	if err != nil {
		return nil, err
	}
	talk := &conversation{
		inquiry: q, question: question, tools: tools, params: &p,
		notes: notes{host: req.Host, prefix: "llm.tools/" + req.IdempotencyKey},
	}
	return talk.run(ctx, wanted)
}

// conversation lets a model use tools until it answers. It belongs to one
// goroutine.
type conversation struct {
	inquiry  *inquiry
	question *chat.Request // grows with every round; names are those on the wire
	tools    *toolset
	params   *ToolsParams
	notes    notes
	results  []ToolResult
}

func (c *conversation) run(ctx context.Context, wanted *shape) (*ToolsResult, error) {
	format := c.question.Format
	if wanted != nil {
		// Servers that hold a model to a format keep it from calling tools,
		// so it is told, and held to it only when its answer must be repaired.
		c.question.Format = nil
		c.question.Messages = append([]chat.Message{wanted.instruction()}, c.question.Messages...)
	}
	answer, rounds, err := c.untilAnswered(ctx)
	if err != nil {
		return nil, err
	}
	var data any
	if wanted != nil {
		repair := *c.question
		repair.Format = format
		if answer, data, err = c.inquiry.fit(ctx, &repair, answer, wanted, c.params.MaxRepairs); err != nil {
			return nil, err
		}
	}
	result := &ToolsResult{Result: *c.inquiry.result(answer, data), Rounds: rounds, ToolResults: c.results, Messages: c.question.Messages}
	if result.ToolResults == nil {
		result.ToolResults = []ToolResult{}
	}
	result.Messages = append(result.Messages, result.Message)
	for _, m := range result.Messages {
		c.tools.fromWire(m.ToolCalls)
	}
	return result, nil
}

// untilAnswered runs rounds of tools until the model answers.
func (c *conversation) untilAnswered(ctx context.Context) (answer *chat.Answer, rounds int, err error) {
	for round := 1; round <= c.params.MaxToolRounds; round++ {
		if answer, err = c.ask(ctx, round); err != nil || len(answer.ToolCalls) == 0 {
			return answer, round - 1, err
		}
		results, err := c.runTools(ctx, round, answer.ToolCalls)
		if err != nil {
			return nil, 0, err
		}
		c.question.Messages = append(c.question.Messages, toMessage(answer))
		for _, r := range results {
			c.question.Messages = append(c.question.Messages, r.message())
		}
		c.results = append(c.results, results...)
		// The choice was for the first round: a model that must call a tool
		// every time would never answer.
		c.question.ToolChoice = ""
	}
	answer, err = c.lastWord(ctx)
	return answer, c.params.MaxToolRounds, err
}

// lastWord asks a model that had all its rounds once more, without tools.
func (c *conversation) lastWord(ctx context.Context) (*chat.Answer, error) {
	c.question.ToolChoice = "none"
	answer, err := c.ask(ctx, c.params.MaxToolRounds+1)
	if err != nil {
		return nil, err
	}
	if answer.Text == "" {
		return nil, tea.Errorf(MaxToolRounds, "the model still calls tools after %d rounds; raise max_tool_rounds or give it a clearer task", c.params.MaxToolRounds)
	}
	answer.ToolCalls, answer.FinishReason = nil, string(MaxToolRounds)
	return answer, nil
}

// ask gives the model's answer of a round: the one that a crash left in the
// notes, or a new one, which is noted before it is acted on.
func (c *conversation) ask(ctx context.Context, round int) (*chat.Answer, error) {
	answer, found, err := c.notes.answer(ctx, round)
	if err != nil {
		return nil, err
	}
	if found {
		c.inquiry.count(answer)
		return answer, nil
	}
	if answer, err = c.inquiry.ask(ctx, c.question, c.inquiry.stream); err != nil {
		return nil, err
	}
	return answer, c.notes.setAnswer(ctx, round, answer)
}
