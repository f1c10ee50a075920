package llm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// AgentLimit is the error type of agent.run if the agent has no answer when one of its
// limits of tokens, cost or time is reached.
const AgentLimit tea.ErrorType = "agent_limit"

// Defaults of [Limits].
const (
	defaultRounds      = 10
	defaultDepth       = 3
	defaultResultBytes = 20_000
)

// Agent is the action agent.run.
func (c *Client) Agent(ctx context.Context, req *tea.Request, p AgentParams) (*AgentResult, error) {
	a := &agent{client: c, call: req, params: &p, start: time.Now(), depth: defaultDepth}
	definition := &p.Agent.Agent
	if name := p.Agent.name; name != "" {
		var err error
		if definition, err = c.settings.agent(name); err != nil {
			return nil, err
		}
	}
	kept, err := a.resume(ctx)
	if err != nil {
		return nil, err
	}
	question, err := (&Ask{Prompt: p.Prompt, Messages: p.Messages, Schema: definition.Output}).request(req.Action, &Settings{})
	if err != nil {
		return nil, err
	}
	if a.wanted, err = newShape(question.Format); err != nil {
		return nil, err
	}
	question.Format = nil
	a.limit(definition.Limits)
	a.talk = &conversation{
		call: req, model: a, question: question, notes: notes{host: req.Host, prefix: "agent"},
		maxRounds: cmp.Or(definition.Limits.Rounds, defaultRounds), roundsKey: "limits.rounds",
		maxResult: cmp.Or(definition.Limits.ResultBytes, defaultResultBytes),
		agent:     a,
	}
	if err := a.become(ctx, p.Agent.name, definition); err != nil {
		return nil, err
	}
	answer, rounds, err := a.talk.untilAnswered(ctx)
	if err != nil {
		return nil, err
	}
	var data any
	if a.wanted != nil {
		if answer, data, err = a.shaped(ctx, answer, definition.Output); err != nil {
			return nil, err
		}
	}
	a.report(ctx, answer.Text)
	result := a.result(answer, data, rounds)
	if kept != nil {
		if err := kept.store(ctx, result.Messages); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// resume loads the messages of the session into the call. It returns nil if the call has no
// session.
func (a *agent) resume(ctx context.Context) (*session, error) {
	p := a.params
	if p.Session == "" {
		return nil, nil
	}
	if p.Messages != nil {
		return nil, tea.Errorf(tea.ValidationError, "use either session or messages")
	}
	s := &session{call: a.call, key: placeOf(p.Agent.name) + "sessions/" + p.Session}
	var err error
	p.Messages, err = s.load(ctx)
	return s, err
}

// agent is one call of agent.run. Its requests are calls of llm.call with keys that
// depend only on the round, so a repeated call gets the recorded answers.
type agent struct {
	client *Client
	call   *tea.Request
	params *AgentParams
	start  time.Time
	talk   *conversation
	wanted *shape // the form of the last answer; nil for any text

	// name and definition are those of the agent that has the conversation.
	name       string
	definition *Agent
	skills     []skill
	toolsets   []*toolset // of all agents that had the conversation
	rules      [][]Rule   // of the agents above, and of those that had the conversation before
	limits     Limits     // tokens, cost and seconds
	depth      int        // levels of delegation that are left
	todo       []TodoItem
	first      *Result // the first answer

	mu    sync.Mutex // guards the following, which concurrent delegated tasks change
	usage chat.Usage
	cost  *float64
}

// limit sets the limits: the own ones, and what is left of those of the agents above.
func (a *agent) limit(own Limits) {
	above := a.params.From.Limits
	a.limits = Limits{
		Tokens: least(own.Tokens, above.Tokens), USD: least(own.USD, above.USD), Seconds: least(own.Seconds, above.Seconds), Context: own.Context,
	}
	if own.Depth != nil {
		a.depth = *own.Depth
	}
	if above.Depth != nil {
		a.depth = min(a.depth, *above.Depth)
	}
}

// least returns the lower one of two limits, of which 0 is none.
func least[T int | float64](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// become makes an agent the one that has the conversation.
func (a *agent) become(ctx context.Context, name string, definition *Agent) error {
	tools, err := newToolset(ctx, a.call.Host, definition.Tools)
	if err != nil {
		return err
	}
	if err := tools.compile(); err != nil {
		return err
	}
	skills, err := readSkills(ctx, definition.Skills)
	if err != nil {
		return err
	}
	own, err := a.ownTools(name, definition, skills)
	if err != nil {
		return err
	}
	for _, t := range own {
		if tools.find(t.name) != nil {
			return tea.Errorf(tea.ValidationError, "the agent has a tool of its own with the name %q; rename the other one", t.name)
		}
		t.wire.Name = tools.wireName(t.name)
		if t.check, err = newShape(&chat.Format{Schema: t.wire.Parameters.(map[string]any)}); err != nil {
			return err
		}
		tools.tools = append(tools.tools, t)
	}
	a.name, a.definition, a.skills = name, definition, skills
	a.talk.tools = tools
	a.toolsets = append(a.toolsets, tools)
	a.talk.question.Tools = nil
	tools.offer(a.talk.question)
	return nil
}

// learn follows the calls of a round that concern the agent itself.
func (a *agent) learn(ctx context.Context, results []ToolResult) error {
	tools := a.talk.tools
	next := ""
	for _, r := range results {
		t := tools.find(r.Name)
		if !r.Success {
			a.report(ctx, r.Name+" failed: "+r.Content)
		}
		if t == nil || !r.Success {
			continue
		}
		switch {
		case t.handOff != "" && next == "":
			next = t.handOff
		case t.isTodo:
			a.todo = todoOf(r.Arguments)
			a.report(ctx, todoLine(a.todo))
		}
	}
	if next == "" {
		return nil
	}
	definition, err := a.client.settings.agent(next)
	if err != nil {
		return err
	}
	if len(a.definition.Approve) > 0 {
		a.rules = append(a.rules, a.definition.Approve)
	}
	for i, m := range a.talk.question.Messages {
		a.talk.question.Messages[i] = m.Bare() // the other agent can have another model
	}
	a.report(ctx, "hands off to "+next)
	a.first = nil
	return a.become(ctx, next, definition)
}

// system returns the instructions of the agent that has the conversation.
func (a *agent) system() string {
	parts := []string{a.definition.Instructions, describeSkills(a.skills)}
	if a.wanted != nil {
		parts = append(parts, a.wanted.instruction().Content.Text())
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "\n\n")
}

func (a *agent) ask(ctx context.Context, round int, question *chat.Request) (*chat.Answer, error) {
	if err := a.shorten(ctx, round, question); err != nil {
		return nil, err
	}
	r, err := a.request(ctx, fmt.Sprintf("request-%d", round), question, map[string]any{"stream": a.params.Stream})
	if err != nil {
		return nil, err
	}
	if a.first == nil {
		a.first = r
	}
	answer := &chat.Answer{
		Model: r.Model, Text: r.Content, Reasoning: r.Reasoning, ToolCalls: r.ToolCalls, FinishReason: r.FinishReason, Usage: &r.Usage, Extra: r.Message.Extra,
	}
	if r.Provider != a.first.Provider || r.Model != a.first.Model {
		// A fallback answered. The next request goes to the agent's own model again.
		m := answer.Message().Bare()
		answer.ToolCalls, answer.Extra = m.ToolCalls, nil
	}
	return answer, nil
}

// request makes a request to the model of the agent, or returns the recorded answer. more
// are further parameters of llm.call.
func (a *agent) request(ctx context.Context, key string, question *chat.Request, more map[string]any) (*Result, error) {
	if err := a.checkLimits(); err != nil {
		return nil, err
	}
	with := map[string]any{"messages": question.Messages}
	for name, v := range more {
		with[name] = v
	}
	if system := a.system(); system != "" {
		with["system"] = system
	}
	if tools := wireSpecs(question.Tools); len(tools) > 0 {
		with["tools"] = tools
		if question.ToolChoice != "" {
			with["tool_choice"] = question.ToolChoice
		}
	}
	return a.callModel(ctx, key, with)
}

// callModel calls llm.call with the options of the agent, and counts the answer.
func (a *agent) callModel(ctx context.Context, key string, with map[string]any) (*Result, error) {
	d := a.definition
	if d.Model != "" {
		with["model"] = d.Model
	}
	if d.Fallbacks != nil {
		with["fallbacks"] = d.Fallbacks
	}
	if d.Temperature != nil {
		with["temperature"] = *d.Temperature
	}
	if d.MaxTokens > 0 {
		with["max_tokens"] = d.MaxTokens
	}
	limited := ctx
	if a.limits.Seconds > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithDeadline(ctx, a.start.Add(toDuration(a.limits.Seconds)))
		defer cancel()
	}
	resp, err := a.call.Invoke(limited, tea.Invocation{Action: "llm.call", Params: with, Key: key})
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			return nil, a.exceeded("seconds", a.limits.Seconds, time.Since(a.start).Seconds())
		}
		return nil, err
	}
	var r Result
	if err := resp.Result.Decode(&r); err != nil {
		return nil, tea.Errorf(tea.InternalError, "result of llm.call: %w", err)
	}
	a.count(r.Usage, r.CostUSD)
	return &r, nil
}

func toDuration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// count adds the usage of a request or of a delegated task.
func (a *agent) count(usage chat.Usage, cost *float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.usage.Add(usage)
	if cost != nil {
		if a.cost == nil {
			a.cost = new(float64)
		}
		*a.cost += *cost
	}
}

// spent returns the usage so far.
func (a *agent) spent() (tokens int, usd float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cost != nil {
		usd = *a.cost
	}
	return a.usage.TotalTokens, usd
}

// checkLimits returns an error if a limit is reached.
func (a *agent) checkLimits() error {
	tokens, usd := a.spent()
	seconds := time.Since(a.start).Seconds()
	switch l := a.limits; {
	case l.Tokens > 0 && tokens >= l.Tokens:
		return a.exceeded("tokens", float64(l.Tokens), float64(tokens))
	case l.USD > 0 && usd >= l.USD:
		return a.exceeded("usd", l.USD, usd)
	case l.Seconds > 0 && seconds >= l.Seconds:
		return a.exceeded("seconds", l.Seconds, seconds)
	}
	return nil
}

func (a *agent) exceeded(limit string, allowed, used float64) error {
	e := tea.Errorf(AgentLimit, "%s has no answer yet, and its limit of %g %s is reached; raise limits.%s or make the task smaller", a.title(), allowed, limit, limit)
	e.Details = map[string]any{"limit": limit, "allowed": allowed, "used": used}
	return e
}

// maxShown is how many bytes of arguments, results and answers the log shows.
const maxShown = 200

// report writes a line of the conversation to the log.
func (a *agent) report(ctx context.Context, text string) {
	a.call.Host.Progress(ctx, -1, a.speaker(": ")+plaintext.Cut(text, maxShown))
}

// speaker returns the name of the agent and a separator for the log; "" without a name.
func (a *agent) speaker(separator string) string {
	if a == nil || a.name == "" {
		return ""
	}
	return a.name + separator
}

// title names the agent in messages.
func (a *agent) title() string {
	if a.name == "" {
		return "The agent"
	}
	return "The agent " + a.name
}

// shaped returns the data of the last answer, and asks for another one if it does not
// match the output schema.
func (a *agent) shaped(ctx context.Context, answer *chat.Answer, schema map[string]any) (*chat.Answer, any, error) {
	data, problem := a.wanted.parse(answer.Text)
	if problem == nil {
		return answer, data, nil
	}
	if e := outcome(answer); e != nil {
		return nil, nil, e
	}
	question := *a.talk.question
	question.ToolChoice = "none"
	question.Messages = append(slices.Clone(question.Messages), answer.Message(), chat.Text("user", fmt.Sprintf("This answer is not usable: %v", problem)))
	r, err := a.request(ctx, "output", &question, map[string]any{"schema": schema})
	if err != nil {
		return nil, nil, err
	}
	return &chat.Answer{Model: r.Model, Text: r.Content, FinishReason: r.FinishReason, Extra: r.Message.Extra}, r.Data, nil
}

func (a *agent) result(answer *chat.Answer, data any, rounds int) *AgentResult {
	messages := append(slices.Clone(a.talk.question.Messages), answer.Message())
	for _, m := range messages {
		for _, tools := range a.toolsets {
			tools.fromWire(m.ToolCalls)
		}
	}
	results := a.talk.results
	if results == nil {
		results = []ToolResult{}
	}
	return &AgentResult{
		Success: true, Content: answer.Text, Data: data, Agent: a.name, FinishReason: answer.FinishReason, Model: answer.Model, Rounds: rounds,
		Usage: a.usage, CostUSD: a.cost, ToolResults: results, Todo: a.todo, Messages: messages,
	}
}
