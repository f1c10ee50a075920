package llm

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/jsonschema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// maxParallelTools bounds how many tools of one round run at once.
const maxParallelTools = 8

// ToolResult is what came of one call of a tool.
type ToolResult struct {
	Round      int           `json:"round"`
	ID         string        `json:"id"`
	Name       string        `json:"name"`
	Arguments  any           `json:"arguments"`
	Success    bool          `json:"success"`
	Content    string        `json:"content" doc:"what the model was told"`
	ErrorType  tea.ErrorType `json:"error_type,omitempty"`
	DurationMS int64         `json:"duration_ms"`
}

// message tells the model.
func (r ToolResult) message() chat.Message {
	m := chat.Text("tool", r.Content)
	m.ToolCallID = r.ID
	return m
}

// runTools runs the calls of one round at the same time and gives their
// results in the order of the calls. Calls that finished before a crash are
// not run again. A tool's failure is a result too; the error is for what ends
// the whole action, such as a question that somebody must answer first. The
// other calls of the round are finished and noted all the same.
func (c *conversation) runTools(ctx context.Context, round int, calls []chat.ToolCall) ([]ToolResult, error) {
	c.inquiry.host.Progress(ctx, -1, fmt.Sprintf("round %d: %s", round, c.names(calls)))
	results := make([]ToolResult, len(calls))
	failures := make([]error, len(calls))
	slots := make(chan struct{}, maxParallelTools)
	var running sync.WaitGroup
	for i, call := range calls {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			results[i], failures[i] = c.runTool(ctx, round, i, call)
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

// runTool runs one call, unless its result was noted before a crash.
func (c *conversation) runTool(ctx context.Context, round, index int, call chat.ToolCall) (ToolResult, error) {
	noted, found, err := c.notes.result(ctx, round, index)
	if err != nil || found {
		return noted, err
	}
	r := ToolResult{Round: round, ID: call.ID, Name: call.Name, Arguments: call.Arguments}
	start := time.Now()
	content, err := c.invoke(ctx, call, &r)
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
	r.Content = cut(string(content), c.params.MaxResultBytes)
	r.DurationMS = time.Since(start).Milliseconds()
	return r, c.notes.setResult(ctx, round, index, r)
}

// invoke calls the action behind a tool and gives its result as JSON.
func (c *conversation) invoke(ctx context.Context, call chat.ToolCall, r *ToolResult) ([]byte, error) {
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
			return nil, tea.Errorf(tea.ValidationError, "the arguments do not fit the tool's parameters: %s", jsonschema.Join(problems))
		}
	}
	resp, err := c.inquiry.host.Invoke(ctx, t.action, arguments)
	if err != nil {
		return nil, err
	}
	return resp.Result.JSON()
}

// cut shortens a text to limit bytes at a character's border and says so.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s... [cut off: %d of %d bytes shown]", text[:end], end, len(text))
}

// names lists the tools that are called, as the workflow calls them.
func (c *conversation) names(calls []chat.ToolCall) string {
	list := make([]string, len(calls))
	for i, call := range calls {
		list[i] = call.Name
		if t := c.tools.find(call.Name); t != nil {
			list[i] = t.name
		}
	}
	return strings.Join(list, ", ")
}
