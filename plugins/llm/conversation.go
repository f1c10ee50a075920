package llm

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// conversation lets a model use tools until it answers: the loop of llm.tools and
// agent.run. It is used by one goroutine.
type conversation struct {
	call      *tea.Request
	model     model
	question  *chat.Request // grows with every round; has names in their wire form
	tools     *toolset
	notes     notes
	maxRounds int
	roundsKey string // the parameter of maxRounds
	maxResult int    // bytes that the model sees of a result
	agent     *agent // has the conversation; nil for llm.tools
	results   []ToolResult
	made      map[string]bool // the calls of tools so far, by action and arguments
}

// model answers the questions of a conversation.
type model interface {
	// ask returns the answer of a round. A repeated call of the action returns the
	// answer that its earlier attempt recorded.
	ask(ctx context.Context, round int, question *chat.Request) (*chat.Answer, error)
}

// untilAnswered runs rounds of tools until the model answers.
func (c *conversation) untilAnswered(ctx context.Context) (answer *chat.Answer, rounds int, err error) {
	for round := 1; round <= c.maxRounds; round++ {
		if answer, err = c.model.ask(ctx, round, c.question); err != nil || len(answer.ToolCalls) == 0 {
			return answer, round - 1, err
		}
		if e := outcome(answer); e != nil {
			return nil, 0, e // the last call may be cut off
		}
		if n := len(answer.ToolCalls); n > maxCalls {
			return nil, 0, tea.Errorf(tea.ResourceExhausted, "the model calls %d tools in one round; the limit is %d", n, maxCalls)
		}
		results, err := c.runTools(ctx, round, answer.ToolCalls)
		if err != nil {
			return nil, 0, err
		}
		c.question.Messages = append(c.question.Messages, answer.Message())
		for _, r := range results {
			c.question.Messages = append(c.question.Messages, r.message())
		}
		c.results = append(c.results, results...)
		if c.agent != nil {
			if err := c.agent.learn(ctx, results); err != nil {
				return nil, 0, err
			}
		}
		// The choice applies to the first round: a model that must always call a tool
		// would never answer.
		c.question.ToolChoice = ""
	}
	answer, err = c.askFinal(ctx)
	return answer, c.maxRounds, err
}

// askFinal asks for a final answer without tools when all rounds are used.
func (c *conversation) askFinal(ctx context.Context) (*chat.Answer, error) {
	c.question.ToolChoice = "none"
	answer, err := c.model.ask(ctx, c.maxRounds+1, c.question)
	if err != nil {
		return nil, err
	}
	if answer.Text == "" {
		return nil, tea.Errorf(MaxToolRounds, "the model still calls tools after %d rounds; raise %s or make the task clearer", c.maxRounds, c.roundsKey)
	}
	answer.ToolCalls, answer.FinishReason = nil, string(MaxToolRounds)
	return answer, nil
}

// maxCalls and maxParallel limit how many tools a model may call in one round, and
// how many of them run concurrently.
const (
	maxCalls    = 128
	maxParallel = 8
)

// ToolResult is the result of a tool call.
type ToolResult struct {
	Round      int           `json:"round"`
	ID         string        `json:"id"`
	Name       string        `json:"name"`
	Arguments  any           `json:"arguments"`
	Success    bool          `json:"success"`
	Content    string        `json:"content" doc:"what the model received"`
	ErrorType  tea.ErrorType `json:"error_type,omitempty"`
	DurationMS int64         `json:"duration_ms"`
}

// message returns the result as a turn of the conversation.
func (r ToolResult) message() chat.Message {
	m := chat.Text("tool", r.Content)
	m.ToolCallID = r.ID
	return m
}

// runTools runs the calls of a round concurrently and returns their results in the order
// of the calls. It does not repeat calls that finished before a crash. A tool's failure
// is a result. An error ends the action, for example an interrupt that waits for an
// answer; the other calls of the round still finish and are noted.
func (c *conversation) runTools(ctx context.Context, round int, calls []chat.ToolCall) ([]ToolResult, error) {
	c.call.Host.Progress(ctx, -1, fmt.Sprintf("%sround %d: %s", c.agent.speaker(", "), round, c.names(calls)))
	results := make([]ToolResult, len(calls))
	failures := make([]error, len(calls))
	slots := make(chan struct{}, maxParallel)
	var running sync.WaitGroup
	for i, call := range calls {
		at := place{round: round, index: i, again: c.again(call)}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			results[i], failures[i] = c.runTool(ctx, at, call)
		})
	}
	running.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// place is the place of a call in the conversation, counted from round 1 and index 0.
type place struct {
	round, index int
	again        bool // an earlier call has the same action and arguments
}

// key names the call of a tool in the run. The host distinguishes calls without a key by
// action, parameters and order. After a crash, equal calls are not made in the same
// order, because noted calls are skipped. In llm.tools the first of equal calls needs no
// key, which would keep its complete result in the checkpoint. An agent's keys have the
// name of the tool, because people see them.
func (c *conversation) key(at place, t *tool) string {
	switch {
	case c.agent != nil:
		return fmt.Sprintf("tool-%d-%d.%s", at.round, at.index, t.wire.Name)
	case at.again:
		return fmt.Sprintf("tool-%d-%d", at.round, at.index)
	}
	return ""
}

// approvalKey names the question before the call. An answer applies to one call.
func (p place) approvalKey() string { return fmt.Sprintf("approve-%d-%d", p.round, p.index) }

// again reports whether the conversation already has an equal call, and records this
// one.
func (c *conversation) again(call chat.ToolCall) bool {
	t := c.tools.find(call.Name)
	arguments, err := call.Object()
	if t == nil || err != nil {
		return false
	}
	text, err := value.Encode(arguments)
	if err != nil {
		return false
	}
	name := t.action + " " + string(text)
	was := c.made[name]
	if c.made == nil {
		c.made = map[string]bool{}
	}
	c.made[name] = true
	return was
}

// runTool runs a call, unless its result was noted before a crash.
func (c *conversation) runTool(ctx context.Context, at place, call chat.ToolCall) (ToolResult, error) {
	noted, found, err := c.notes.result(ctx, at)
	if err != nil || found {
		return noted, err
	}
	r := ToolResult{Round: at.round, ID: call.ID, Name: call.Name, Arguments: call.Arguments}
	start := time.Now()
	content, err := c.invoke(ctx, at, call, &r)
	if err != nil {
		e := tea.AsError(err)
		if ctx.Err() != nil || e.Type == tea.Canceled || e.Type == tea.BudgetExceeded {
			return r, e
		}
		r.ErrorType = e.Type
		content = value.AppendString([]byte(`{"error":`), e.Message)
		content = value.AppendString(append(content, `,"error_type":`...), string(e.Type))
		content = append(content, '}')
	}
	r.Success = err == nil
	r.Content = plaintext.Cut(string(content), c.maxResult)
	r.DurationMS = time.Since(start).Milliseconds()
	if t := c.tools.find(call.Name); r.Success && c.agent != nil && t.run == nil {
		return r, nil // the host has recorded it
	}
	return r, c.notes.setResult(ctx, at, r)
}

// invoke calls the action of a tool and returns its result as JSON.
func (c *conversation) invoke(ctx context.Context, at place, call chat.ToolCall, r *ToolResult) ([]byte, error) {
	t := c.tools.find(call.Name)
	if t == nil {
		return nil, tea.Errorf(tea.NotFound, "%s", c.tools.unknown(call.Name))
	}
	r.Name = t.name
	arguments, err := call.Object()
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%w", err)
	}
	r.Arguments = arguments
	if t.check != nil {
		if problems := t.check.check.Validate(arguments); len(problems) > 0 {
			return nil, tea.Errorf(tea.ValidationError, "the arguments do not match the tool's parameters: %s", jsonschema.Join(problems))
		}
	}
	if err := c.permit(ctx, at, t, arguments); err != nil {
		return nil, err
	}
	if t.run != nil {
		text, err := t.run(arguments)
		return []byte(text), err
	}
	var params any = arguments
	if t.params != nil {
		params = t.params(arguments)
	}
	resp, err := c.call.Invoke(ctx, tea.Invocation{Action: t.action, Params: params, Key: c.key(at, t)})
	if err != nil {
		return nil, err
	}
	if t.result != nil {
		return t.result(resp.Result)
	}
	return resp.Result.JSON()
}

// permit returns an error for a call that must not be made.
func (c *conversation) permit(ctx context.Context, at place, t *tool, arguments map[string]any) error {
	switch {
	case c.agent != nil:
		return c.agent.permit(ctx, at, t, arguments)
	case t.ask:
		return approve(ctx, c.call, at, "The model", t, arguments)
	}
	return nil
}

// names lists the called tools by the workflow's names; those of an agent with their
// arguments.
func (c *conversation) names(calls []chat.ToolCall) string {
	list := make([]string, len(calls))
	for i, call := range calls {
		list[i] = call.Name
		if t := c.tools.find(call.Name); t != nil {
			list[i] = t.name
		}
		if c.agent != nil {
			list[i] += " " + plaintext.Cut(call.Arguments, maxShown)
		}
	}
	return strings.Join(list, ", ")
}

// notes keeps a conversation with tools in the run's checkpoint: each answer of the
// model before its tools run, and each tool's result when it is known. A repeated call
// with the same idempotency key reads them instead of asking and running tools again.
// With one note per fact the checkpoint grows linearly with the conversation. It is safe
// for concurrent use.
type notes struct {
	host   tea.Host
	prefix string
}

func (n notes) answerKey(round int) string { return fmt.Sprintf("%s/%d", n.prefix, round) }

func (n notes) resultKey(at place) string {
	return fmt.Sprintf("%s/%d/%d", n.prefix, at.round, at.index)
}

// targetAnswer is an answer and the target that returned it.
type targetAnswer struct {
	*chat.Answer
	Target int `json:"target,omitempty"`
}

func (n notes) answer(ctx context.Context, round int) (answer targetAnswer, found bool, err error) {
	found, err = n.read(ctx, n.answerKey(round), &answer)
	return answer, found, err
}

func (n notes) setAnswer(ctx context.Context, round int, answer targetAnswer) error {
	return n.host.SetNote(ctx, n.answerKey(round), answer)
}

func (n notes) result(ctx context.Context, at place) (r ToolResult, found bool, err error) {
	found, err = n.read(ctx, n.resultKey(at), &r)
	return r, found, err
}

func (n notes) setResult(ctx context.Context, at place, r ToolResult) error {
	return n.host.SetNote(ctx, n.resultKey(at), r)
}

func (n notes) read(ctx context.Context, key string, into any) (found bool, err error) {
	note, found, err := n.host.Note(ctx, key)
	if err != nil || !found {
		return false, err
	}
	if err := note.Decode(into); err != nil {
		return false, tea.Errorf(tea.InternalError, "read the note %s: %w", key, err)
	}
	return true, nil
}
