package llm

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/transport"
	tea "github.com/the-edge-agent/tea/sdk"
)

// inquiry is one call of an action: the requests that it makes of one model,
// counted and measured together. It belongs to one goroutine.
type inquiry struct {
	target *target
	prices map[string]Price
	host   tea.Host
	stream bool // whether the caller wants tokens as they come

	start      time.Time
	firstToken time.Duration // 0 until there was one
	usage      chat.Usage
	model      string
	repairs    int
}

func (c *Client) inquire(ctx context.Context, req *tea.Request, conn Connection, stream bool) (*inquiry, error) {
	t, err := c.target(ctx, req, conn, c.settings.Connection)
	if err != nil {
		return nil, err
	}
	return &inquiry{target: t, prices: c.settings.Prices, host: req.Host, stream: stream, start: time.Now(), model: t.model}, nil
}

// ask makes one request and takes its answer into account. With stream the
// tokens go to the host as they come.
func (q *inquiry) ask(ctx context.Context, req *chat.Request, stream bool) (*chat.Answer, error) {
	var emit func(chat.Delta)
	if stream {
		emit = func(d chat.Delta) { q.token(ctx, d) }
	}
	limited, cancel := transport.Expire(ctx, q.target.timeout)
	defer cancel()
	req.Model = q.target.model
	answer, err := q.target.Chat(limited, req, emit)
	if err != nil {
		return nil, err
	}
	for i := range answer.ToolCalls {
		if answer.ToolCalls[i].ID == "" {
			answer.ToolCalls[i].ID = fmt.Sprintf("call_%d_%d", len(req.Messages), i)
		}
	}
	if answer.Usage == nil {
		answer.Usage = estimate(req, answer)
	}
	q.count(answer)
	return answer, nil
}

// count adds an answer to the totals.
func (q *inquiry) count(answer *chat.Answer) {
	q.usage.Add(*answer.Usage)
	q.model = cmp.Or(answer.Model, q.model)
}

func (q *inquiry) token(ctx context.Context, d chat.Delta) {
	if d.Text == "" {
		return
	}
	if q.firstToken == 0 {
		q.firstToken = max(time.Since(q.start), 1)
	}
	q.host.Token(ctx, d.Text)
}

// result makes the action's result of the last answer.
func (q *inquiry) result(answer *chat.Answer, data any) *Result {
	r := &Result{
		Success: true, Content: answer.Text, Data: data, Reasoning: answer.Reasoning,
		Message: toMessage(answer), ToolCalls: answer.ToolCalls, FinishReason: answer.FinishReason,
		Model: q.model, Provider: q.target.name, Usage: q.usage, Repairs: q.repairs,
		CostUSD:   cost(q.prices, q.usage, q.target.model, q.model),
		LatencyMS: time.Since(q.start).Milliseconds(),
	}
	if r.ToolCalls == nil {
		r.ToolCalls = []chat.ToolCall{}
	}
	if q.firstToken > 0 {
		ms := q.firstToken.Milliseconds()
		r.TimeToFirstTokenMS = &ms
	}
	return r
}

// toMessage makes an answer a turn of the conversation.
func toMessage(answer *chat.Answer) chat.Message {
	m := chat.Text("assistant", answer.Text)
	m.Reasoning, m.ToolCalls = answer.Reasoning, answer.ToolCalls
	return m
}

// estimate stands in for a count that the server did not make.
func estimate(req *chat.Request, answer *chat.Answer) *chat.Usage {
	var asked, said strings.Builder
	for _, m := range req.Messages {
		asked.WriteString(m.Content.Text())
		writeCalls(&asked, m.ToolCalls)
	}
	said.WriteString(answer.Text)
	said.WriteString(answer.Reasoning)
	writeCalls(&said, answer.ToolCalls)
	u := &chat.Usage{InputTokens: chat.EstimateTokens(asked.String()), OutputTokens: chat.EstimateTokens(said.String()), Estimated: true}
	u.TotalTokens = u.InputTokens + u.OutputTokens
	return u
}

func writeCalls(b *strings.Builder, calls []chat.ToolCall) {
	for _, c := range calls {
		b.WriteString(c.Name)
		b.WriteString(c.Arguments)
	}
}
