package llm

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/command"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// exchange is one call of an action. It counts and measures all requests of the call.
// It is not safe for concurrent use.
type exchange struct {
	call   *tea.Request
	limits *slots
	price  func(t *target, models ...string) *Price
	stream bool // whether tokens are emitted as they arrive

	// targets are the server and its fallbacks, and current is the one in use. It
	// stays in use for the rest of the call.
	targets []*target
	current int
	// foreign is the number of messages before the first request to the current
	// target, which does not understand members that other servers added to them.
	foreign int

	start      time.Time
	firstToken time.Duration // 0 before the first token
	asked      *chat.Request // the current request
	received   int           // bytes of its answer that arrived
	usage      chat.Usage
	cost       *float64 // nil until a request has a price
	spent      error    // set once the run's budget is spent
	model      string
	repairs    int
}

// exchange prepares the requests of a call to a server and its fallbacks. conn are the
// parameters of the call; nil fallbacks means the fallbacks of the settings.
func (c *Client) exchange(req *tea.Request, conn Connection, fallbacks []Fallback, stream bool) (*exchange, error) {
	if err := checkAddress(req); err != nil {
		return nil, err
	}
	if fallbacks == nil {
		fallbacks = c.settings.Fallbacks
	}
	x := &exchange{call: req, limits: c.limits, price: c.price, stream: stream, start: time.Now()}
	conns, recorded := c.settings.connections(conn, fallbacks)
	for _, to := range conns {
		t, err := c.target(req, to, recorded, x.failed)
		if err != nil {
			return nil, err
		}
		x.targets = append(x.targets, t)
	}
	x.model = x.targets[0].model
	return x, nil
}

// checkAddress refuses an empty api_base in a call, for example from a template
// without a value: the request would go to another server. In the settings, an empty
// value means the default, as with ${VAR:-}.
func checkAddress(req *tea.Request) error {
	v, err := req.Params.Value()
	if err != nil {
		return err
	}
	params, _ := v.(map[string]any)
	if address, given := params["api_base"]; given && address == "" {
		return tea.Errorf(tea.ValidationError, "api_base is empty; leave it out to use settings.llm.api_base, or the default")
	}
	return nil
}

// target is the server in use.
func (x *exchange) target() *target { return x.targets[x.current] }

// ask makes one request and counts its answer. With stream, tokens go to the host as
// they arrive. It falls back after a failure that another server may not have, unless
// tokens were already emitted.
func (x *exchange) ask(ctx context.Context, req *chat.Request, stream bool) (*chat.Answer, error) {
	var earlier []string
	for {
		if x.spent != nil {
			return nil, x.spent
		}
		answer, err := x.askTarget(ctx, req, stream)
		if err == nil {
			x.count(ctx, answer)
			return answer, nil
		}
		failure := tea.AsError(err)
		if x.current+1 == len(x.targets) || ctx.Err() != nil || !mayFallBack(failure) {
			return nil, withEarlier(failure, earlier)
		}
		earlier = append(earlier, fmt.Sprintf("%s: %s", x.target(), failure.Message))
		x.moveTo(x.current+1, req)
		x.call.Host.Log(ctx, slog.LevelWarn, fmt.Sprintf("falling back to %s", x.target()), map[string]any{
			"error_type": string(failure.Type), "error": failure.Message,
		})
	}
}

// moveTo switches to a target. Members that other servers added to earlier turns are
// not sent to it.
func (x *exchange) moveTo(target int, req *chat.Request) {
	if target != x.current && target < len(x.targets) {
		x.current, x.foreign = target, len(req.Messages)
	}
}

// mayFallBack reports whether another server may succeed after a failure.
func mayFallBack(failure *tea.Error) bool {
	switch failure.Type {
	case tea.ConnectionError, tea.RateLimited, tea.Timeout, tea.PermissionDenied, tea.NotFound, command.Failed:
		return !httpapi.WasInterrupted(failure)
	}
	return false
}

// withEarlier appends the failures that caused the fallbacks.
func withEarlier(failure *tea.Error, earlier []string) error {
	if len(earlier) == 0 {
		return failure
	}
	all := *failure
	for _, text := range earlier {
		all.Message += "; before the fallback: " + text
	}
	return &all
}

// askTarget makes a request to the current target.
func (x *exchange) askTarget(ctx context.Context, req *chat.Request, stream bool) (*chat.Answer, error) {
	t := x.target()
	limited, release, err := x.begin(ctx, t)
	if err != nil {
		return nil, err
	}
	defer release()
	own := *req
	own.Model, own.Extra = t.model, t.extra
	if x.foreign > 0 {
		own.Messages = append([]chat.Message(nil), req.Messages...)
		for i := range min(x.foreign, len(own.Messages)) {
			own.Messages[i] = own.Messages[i].Bare()
		}
	}
	x.asked, x.received = &own, 0
	var emit func(chat.Delta)
	if stream {
		emit = func(d chat.Delta) { x.token(ctx, d) }
	}
	answer, err := t.Chat(limited, &own, emit)
	if err != nil {
		return nil, err
	}
	x.nameCalls(req, answer)
	if answer.Usage == nil {
		answer.Usage = chat.EstimateUsage(&own, len(answer.Text)+len(answer.Reasoning)+chat.SizeOfCalls(answer.ToolCalls))
	}
	return answer, nil
}

// embed makes a request for vectors and counts it.
func (x *exchange) embed(ctx context.Context, req *chat.EmbedRequest) (*chat.Embeddings, error) {
	if x.spent != nil {
		return nil, x.spent
	}
	t := x.target()
	limited, release, err := x.begin(ctx, t)
	if err != nil {
		return nil, err
	}
	defer release()
	req.Model, req.Extra = t.model, t.extra
	got, err := t.Embed(limited, req)
	if err != nil {
		return nil, err
	}
	if got.Usage == nil {
		got.Usage = &chat.Usage{Estimated: true}
		for _, text := range req.Input {
			got.Usage.InputTokens += chat.EstimateTokens(text)
		}
		got.Usage.TotalTokens = got.Usage.InputTokens
	}
	x.model = cmp.Or(got.Model, x.model)
	x.charge(ctx, *got.Usage)
	return got, nil
}

// begin waits for a slot of a target, and starts the time limit and the progress
// reports of a request. release ends them.
func (x *exchange) begin(ctx context.Context, t *target) (limited context.Context, release func(), err error) {
	stop := x.keepAlive(ctx)
	free, err := x.limits.acquire(ctx, t.server, t.limit)
	if err != nil {
		stop()
		return nil, nil, tea.AsError(err)
	}
	limited, cancel := httpapi.Expire(ctx, t.timeout)
	return limited, func() { cancel(); free(); stop() }, nil
}

// progressInterval is how often a waiting call reports progress: the host ends calls
// that are silent for minutes.
const progressInterval = time.Minute

// keepAlive reports progress until stop is called.
func (x *exchange) keepAlive(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	message := fmt.Sprintf("waiting for %s", x.target())
	go func() {
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				x.call.Host.Progress(ctx, -1, message)
			}
		}
	}()
	return stop
}

// nameCalls makes the ids of tool calls unique, because results refer to them.
func (x *exchange) nameCalls(req *chat.Request, answer *chat.Answer) {
	seen := map[string]bool{}
	for i := range answer.ToolCalls {
		call := &answer.ToolCalls[i]
		if call.ID == "" || seen[call.ID] {
			call.ID = fmt.Sprintf("call_%d_%d", len(req.Messages), i)
		}
		seen[call.ID] = true
	}
}

// count adds an answer to the totals and to the run's budget.
func (x *exchange) count(ctx context.Context, answer *chat.Answer) {
	x.model = cmp.Or(answer.Model, x.target().model)
	x.charge(ctx, *answer.Usage)
}

// charge adds the usage of a request to the totals and to the run's budget. A spent
// budget fails the next request, not this one.
func (x *exchange) charge(ctx context.Context, usage chat.Usage) {
	u := tea.Usage{Tokens: int64(usage.TotalTokens)}
	if usd := x.add(usage); usd != nil {
		u.USD = *usd
	}
	if err := x.call.Usage(ctx, u); err != nil {
		x.spent = err
	}
}

// add adds to the totals and returns the cost; nil if it is unknown.
func (x *exchange) add(usage chat.Usage) *float64 {
	x.usage.Add(usage)
	price := x.price(x.target(), x.target().model, x.model)
	if price == nil {
		return nil
	}
	usd := price.of(usage)
	if x.cost == nil {
		x.cost = new(float64)
	}
	*x.cost += usd
	return &usd
}

// failed charges a request that failed during the answer, and logs that it is retried.
// If it returns an error, the call ends.
func (x *exchange) failed(ctx context.Context, f httpapi.Failure) error {
	if f.Answered && x.asked != nil {
		x.charge(ctx, *chat.EstimateUsage(x.asked, x.received))
		x.received = 0
	}
	if !f.Again {
		return nil
	}
	if x.spent != nil {
		return x.spent
	}
	x.call.Host.Log(ctx, slog.LevelWarn, fmt.Sprintf("retrying the model request in %s", f.Wait.Round(time.Millisecond)), map[string]any{
		"attempt": f.Attempt, "wait_ms": f.Wait.Milliseconds(), "error_type": string(f.Reason.Type), "error": f.Reason.Message,
	})
	return nil
}

func (x *exchange) token(ctx context.Context, d chat.Delta) {
	x.received += len(d.Text) + len(d.Reasoning)
	if d.Text == "" {
		return
	}
	if x.firstToken == 0 {
		x.firstToken = max(time.Since(x.start), 1)
	}
	x.call.Host.Token(ctx, d.Text)
}

// result returns the action's result for the last answer.
func (x *exchange) result(answer *chat.Answer, data any) *Result {
	r := &Result{
		Success: true, Content: answer.Text, Data: data, Reasoning: answer.Reasoning,
		Message: answer.Message(), ToolCalls: answer.ToolCalls, FinishReason: answer.FinishReason,
		Model: x.model, Provider: x.target().name, Usage: x.usage, NotSent: answer.NotSent, Repairs: x.repairs,
		CostUSD: x.cost, LatencyMS: time.Since(x.start).Milliseconds(),
	}
	if r.ToolCalls == nil {
		r.ToolCalls = []chat.ToolCall{}
	}
	if x.firstToken > 0 {
		ms := x.firstToken.Milliseconds()
		r.TimeToFirstTokenMS = &ms
	}
	return r
}
