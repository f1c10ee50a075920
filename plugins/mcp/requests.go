package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

const (
	// maxReports is the number of progress reports, and of log records, that a session
	// passes on per second.
	maxReports = 50
	// maxQuestions bounds the questions of a server during a call.
	maxQuestions = 20
	// notificationGrace bounds the wait for the notifications before the result of a call.
	notificationGrace = 5 * time.Second
)

// calls are the running calls of a session. A server may ask questions, report
// progress and log only during a call. It is safe for concurrent use.
type calls struct {
	server *server

	mu      sync.Mutex
	last    int
	running map[string]*call // by progress token
	second  time.Time
	reports int
	dropped int
	// read and handled count notifications; next is closed when another one is
	// handled.
	read, handled int
	next          chan struct{}
}

// call is a running call.
type call struct {
	ctx   context.Context
	stop  context.CancelCauseFunc
	token string
	req   *tea.Request

	mu                  sync.Mutex
	failure             error // ends the call, such as an interrupt
	questions, requests int
}

// callKey is the context key for the call of a request.
type callKey struct{}

// begin registers a call and derives its context from ctx. The caller calls end.
func (c *calls) begin(ctx context.Context, req *tea.Request) (started *call, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	k := &call{token: "tea-" + strconv.Itoa(c.last), req: req}
	ctx, k.stop = context.WithCancelCause(ctx)
	k.ctx = context.WithValue(ctx, callKey{}, k)
	if c.running == nil {
		c.running = map[string]*call{}
	}
	c.running[k.token] = k
	return k, func() {
		k.stop(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, k.token)
	}
}

// counted are the notifications that a call waits for before it ends.
var counted = []string{"notifications/message", "notifications/progress", "notifications/tools/list_changed"}

// arrived counts a message of the server if it is a notification. The SDK queues
// notifications, so the result of a call can overtake them.
func (c *calls) arrived(message []byte) {
	if !bytes.Contains(message, []byte(`"notifications/`)) {
		return
	}
	var m struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(message, &m) == nil && slices.Contains(counted, m.Method) {
		c.mu.Lock()
		c.read++
		c.mu.Unlock()
	}
}

// count is middleware that counts handled notifications.
func (c *calls) count(handle mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if slices.Contains(counted, method) {
			defer func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.handled++
				if c.next != nil {
					close(c.next)
					c.next = nil
				}
			}()
		}
		return handle(ctx, method, req)
	}
}

// waitForNotifications waits until all notifications that were read are handled. The wait is bounded,
// because the SDK never handles malformed ones.
func (c *calls) waitForNotifications(ctx context.Context) {
	late := time.NewTimer(notificationGrace)
	defer late.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for read := c.read; c.handled < read; {
		if c.next == nil {
			c.next = make(chan struct{})
		}
		next := c.next
		c.mu.Unlock()
		select {
		case <-next:
			c.mu.Lock()
		case <-ctx.Done():
			c.mu.Lock()
			return
		case <-late.C:
			c.mu.Lock()
			c.handled = max(c.handled, read) // the next call need not wait for them, too
			return
		}
	}
}

// only returns the call of a server's request: the call in the context, or the only
// running one.
func (c *calls) only(ctx context.Context) (*call, error) {
	if k, ok := ctx.Value(callKey{}).(*call); ok {
		return k, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.running) != 1 {
		return nil, fmt.Errorf("the request belongs to one of %d calls and does not specify which; max_concurrent_calls: 1 in settings.mcp.servers.%s avoids this", len(c.running), c.server.name)
	}
	for _, k := range c.running {
		return k, nil
	}
	return nil, nil
}

// named returns the running call with a progress token, or nil.
func (c *calls) named(token string) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[token]
}

// failed returns the error that ended the call, or nil.
func (k *call) failed() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failure
}

// fail ends the call with the error of an action that the server caused, such as an
// interrupt that waits for an answer.
func (k *call) fail(err error) {
	k.mu.Lock()
	if k.failure == nil {
		k.failure = err
	}
	k.mu.Unlock()
	k.stop(err)
}

// count increments a counter of the call and reports whether it is within the limit.
func (k *call) count(n *int, limit int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	*n++
	return *n <= limit
}

// allow reports whether another report may be passed on, and how many were dropped
// since the last one.
func (c *calls) allow() (dropped int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.second) >= time.Second {
		c.second, c.reports = now, 0
	}
	if c.reports++; c.reports > maxReports {
		c.dropped++
		return 0, false
	}
	dropped, c.dropped = c.dropped, 0
	return dropped, true
}

func (c *calls) progress(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	k := c.named(token)
	if k == nil {
		return
	}
	if _, ok := c.allow(); !ok {
		return // the next report says more
	}
	fraction := -1.0
	if p := req.Params; p.Total > 0 && p.Progress >= 0 {
		fraction = min(p.Progress/p.Total, 1)
	}
	message := req.Params.Message
	if message == "" {
		message = c.server.name
	}
	k.req.Host.Progress(k.ctx, fraction, plaintext.Cut(printable(message), 500))
}

func (c *calls) log(ctx context.Context, req *mcp.LoggingMessageRequest) {
	dropped, ok := c.allow()
	if !ok {
		return
	}
	text, isText := req.Params.Data.(string)
	if !isText {
		raw, err := json.Marshal(req.Params.Data)
		if err != nil {
			return
		}
		text = string(raw)
	}
	fields := map[string]any{"server": c.server.name}
	if req.Params.Logger != "" {
		fields["logger"] = plaintext.Cut(printable(req.Params.Logger), 100)
	}
	if dropped > 0 {
		fields["dropped"] = int64(dropped)
	}
	text = plaintext.Cut(printable(text), maxDescription)
	token, _ := req.Params.Meta["progressToken"].(string) // tea mcp names the call
	if k := c.named(token); k != nil {
		k.req.Host.Log(k.ctx, level(req.Params.Level), text, fields)
		return
	}
	if k, err := c.only(ctx); err == nil {
		k.req.Host.Log(k.ctx, level(req.Params.Level), text, fields)
		return
	}
	slog.Log(ctx, level(req.Params.Level), text, "fields", fields)
}

// level converts a level of the protocol, a syslog level.
func level(l mcp.LoggingLevel) slog.Level {
	switch l {
	case "debug":
		return slog.LevelDebug
	case "warning":
		return slog.LevelWarn
	case "error", "critical", "alert", "emergency":
		return slog.LevelError
	}
	return slog.LevelInfo
}

// elicit asks a person a question of the server. A null answer declines it, and so
// does false for a question without fields. If the run stops to wait for the answer,
// the call ends, and is repeated when the run is resumed.
func (c *calls) elicit(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	k, err := c.only(ctx)
	if err != nil {
		return nil, err
	}
	if !k.count(&k.questions, maxQuestions) {
		return nil, fmt.Errorf("the server asks more than %d questions in one call", maxQuestions)
	}
	question := fmt.Sprintf("The MCP server %s asks: %s", c.server.name, plaintext.Cut(printable(req.Params.Message), 2000))
	var answer any = map[string]any{"type": "boolean"}
	if req.Params.Mode == "url" {
		question = fmt.Sprintf("The MCP server %s asks to open %s: %s Answer true when that is done.", c.server.name, plaintext.Cut(printable(req.Params.URL), 2000), plaintext.Cut(printable(req.Params.Message), 2000))
	} else if hasFields(req.Params.RequestedSchema) {
		answer = map[string]any{"anyOf": []any{value.Whole(req.Params.RequestedSchema), map[string]any{"type": "null", "description": "declines"}}}
	}
	resp, err := k.req.Host.Invoke(k.ctx, "human.ask", map[string]any{"question": question, "schema": answer})
	if err != nil {
		k.fail(err)
		return nil, err
	}
	var result struct {
		Answer any `json:"answer"`
	}
	if err := resp.Result.Decode(&result); err != nil {
		return nil, err
	}
	switch a := result.Answer.(type) {
	case map[string]any:
		return &mcp.ElicitResult{Action: "accept", Content: a}, nil
	case bool:
		if a {
			return &mcp.ElicitResult{Action: "accept"}, nil
		}
	}
	return &mcp.ElicitResult{Action: "decline"}, nil
}

// hasFields reports whether a schema asks for fields.
func hasFields(schema any) bool {
	object, _ := schema.(map[string]any)
	fields, _ := object["properties"].(map[string]any)
	return len(fields) > 0
}

// sample calls the workflow's language model for the server.
func (c *calls) sample(ctx context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	k, err := c.only(ctx)
	if err != nil {
		return nil, err
	}
	limits := c.server.config.Sampling
	if !k.count(&k.requests, max(1, limits.MaxRequests)) {
		return nil, fmt.Errorf("the server makes more than %d requests to a model in one call (sampling.max_requests)", limits.MaxRequests)
	}
	params := map[string]any{"max_tokens": int64(max(1, limits.MaxTokens))}
	if n := req.Params.MaxTokens; n > 0 && n < int64(limits.MaxTokens) {
		params["max_tokens"] = n
	}
	if limits.Model != "" {
		params["model"] = limits.Model
	}
	if req.Params.SystemPrompt != "" {
		params["system"] = req.Params.SystemPrompt
	}
	if req.Params.Temperature > 0 {
		params["temperature"] = req.Params.Temperature
	}
	if stop := req.Params.StopSequences; len(stop) > 0 {
		params["stop"] = stop
	}
	var messages []any
	for _, m := range req.Params.Messages {
		text, ok := m.Content.(*mcp.TextContent)
		if !ok || m.Role != "user" && m.Role != "assistant" {
			return nil, fmt.Errorf("only messages of user and assistant with text are supported, not %T of %s", m.Content, m.Role)
		}
		messages = append(messages, map[string]any{"role": string(m.Role), "content": text.Text})
	}
	params["messages"] = messages
	resp, err := k.req.Host.Invoke(k.ctx, "llm.call", params)
	if err != nil {
		if e := tea.AsError(err); e.Type == tea.BudgetExceeded || e.Type == tea.Canceled {
			k.fail(err)
		}
		return nil, err
	}
	var answer struct {
		Content      string `json:"content"`
		Model        string `json:"model"`
		FinishReason string `json:"finish_reason"`
	}
	if err := resp.Result.Decode(&answer); err != nil {
		return nil, err
	}
	reason := "endTurn"
	if strings.HasPrefix(answer.FinishReason, "length") {
		reason = "maxTokens"
	}
	return &mcp.CreateMessageResult{Content: &mcp.TextContent{Text: answer.Content}, Model: answer.Model, Role: "assistant", StopReason: reason}, nil
}
