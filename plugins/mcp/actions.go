package mcp

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// CallParams are the parameters of mcp.call.
type CallParams struct {
	Server    string         `json:"server" doc:"name of the server in settings.mcp.servers"`
	Tool      string         `json:"tool" doc:"name of the tool at the server"`
	Arguments map[string]any `json:"arguments,omitempty" doc:"its arguments"`
}

// Call is the action mcp.call.
func (c *Client) Call(ctx context.Context, req *tea.Request, p CallParams) (*ToolResult, error) {
	s, err := c.server(p.Server)
	if err != nil {
		return nil, err
	}
	return s.callTool(ctx, req, tea.ValuePayload(p.Arguments), func(l *listing) (*tool, error) {
		if t := l.named(p.Tool); t != nil {
			return t, nil
		}
		return nil, s.errorf(tea.NotFound, "unknown tool %s%s; mcp.list_tools lists its tools", quoted(p.Tool), diag.Ending(p.Tool, l.names()))
	})
}

// callAction calls the tool of an action such as mcp.files_read_file.
func (c *Client) callAction(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	name, _, _ := strings.Cut(strings.TrimPrefix(req.Action, bundleName+"."), "_")
	s, err := c.server(name)
	if err != nil {
		return nil, err
	}
	result, err := s.callTool(ctx, req, req.Params, func(l *listing) (*tool, error) {
		if t := l.action(req.Action); t != nil {
			return t, nil
		}
		actions := make([]string, len(l.tools))
		for i, t := range l.tools {
			actions[i] = t.action
		}
		return nil, s.errorf(tea.NotFound, "it has no tool for the action %s%s; mcp.list_tools lists its tools", req.Action, diag.Ending(req.Action, actions))
	})
	if err != nil {
		return nil, err
	}
	return tea.Respond(result), nil
}

// callTool calls the tool that find selects from the server's listing.
func (s *server) callTool(ctx context.Context, req *tea.Request, arguments tea.Payload, find func(*listing) (*tool, error)) (*ToolResult, error) {
	release, err := s.slot(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return again(func() (*ToolResult, error) { return s.callOnce(ctx, req, arguments, find) })
}

// callOnce is callTool in the current session.
func (s *server) callOnce(ctx context.Context, req *tea.Request, arguments tea.Payload, find func(*listing) (*tool, error)) (*ToolResult, error) {
	se, l, err := s.listing(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	t, err := find(l)
	if err != nil {
		return nil, err
	}
	if refusal := s.refusal(t); refusal != nil {
		return nil, refusal
	}
	if arguments, err = t.check.Accept(t.action, arguments); err != nil {
		return nil, err
	}
	object, err := arguments.Shared()
	if err != nil {
		return nil, err
	}
	var res *mcp.CallToolResult
	err = s.during(ctx, se, req, "answer the call of the tool "+quoted(t.def.Name), func(ctx context.Context, token string) error {
		params := &mcp.CallToolParams{Name: t.def.Name, Arguments: object, Meta: mcp.Meta{"progressToken": token, mcp.MetaKeyLogLevel: logLevel}}
		var err error
		res, err = se.CallTool(ctx, params)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.toolResult(t, res)
}

// during makes one request of a call, within the server's time limit.
func (s *server) during(ctx context.Context, se *session, req *tea.Request, what string, do func(ctx context.Context, token string) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, s.config.timeout(), errCall)
	defer cancel()
	var expired atomic.Bool
	c, end := se.calls.begin(context.WithValue(limited, expiredKey{}, &expired), req)
	defer end()
	err := do(c.ctx, c.token)
	se.calls.waitForNotifications(c.ctx)
	if failure := c.failed(); failure != nil {
		return failure
	}
	if err != nil {
		err = s.explain(limited, se, what, err)
	}
	if err != nil && expired.Load() {
		return se.expire(err)
	}
	return err
}

// ListParams are the parameters of mcp.list_tools.
type ListParams struct {
	Server string `json:"server,omitempty" doc:"name of the server; default: all"`
}

// ListResult are the tools of servers.
type ListResult struct {
	Success bool            `json:"success" doc:"always true"`
	Tools   []ToolInfo      `json:"tools" doc:"the tools in the order of their servers"`
	Failed  []FailedServer  `json:"failed" doc:"the servers that could not be asked, if all were"`
	Omitted []OmittedServer `json:"omitted" doc:"the servers with tools that are left out"`
}

// ToolInfo is a tool.
type ToolInfo struct {
	Server      string `json:"server"`
	Name        string `json:"name" doc:"its name at the server"`
	Action      string `json:"action" doc:"the action that calls it"`
	Description string `json:"description"`
	Parameters  any    `json:"parameters" doc:"JSON Schema of its arguments, as far as tea supports it"`
	ReadOnly    bool   `json:"read_only" doc:"whether the server says that the tool changes nothing"`
	Refused     string `json:"refused,omitempty" doc:"why it cannot be called, for example because it has changed"`
	Unchecked   string `json:"unchecked,omitempty" doc:"why its arguments are not checked"`
}

// FailedServer is a server that could not be queried.
type FailedServer struct {
	Server    string        `json:"server"`
	Error     string        `json:"error"`
	ErrorType tea.ErrorType `json:"error_type"`
}

// OmittedServer is a server with tools that were left out.
type OmittedServer struct {
	Server string `json:"server"`
	Reason string `json:"reason"`
}

// ListTools is the action mcp.list_tools.
func (c *Client) ListTools(ctx context.Context, req *tea.Request, p ListParams) (*ListResult, error) {
	names := c.names()
	if p.Server != "" {
		if _, err := c.server(p.Server); err != nil {
			return nil, err
		}
		names = []string{p.Server}
	}
	result := &ListResult{Success: true, Tools: []ToolInfo{}, Failed: []FailedServer{}, Omitted: []OmittedServer{}}
	for i, asked := range c.ask(ctx, req.Host, names) {
		name := names[i]
		if asked.err != nil {
			e := tea.AsError(asked.err)
			if p.Server != "" || ctx.Err() != nil {
				return nil, e
			}
			result.Failed = append(result.Failed, FailedServer{name, e.Message, e.Type})
			continue
		}
		for _, t := range asked.listing.tools {
			info := ToolInfo{Server: name, Name: printable(t.def.Name), Action: t.action, Description: t.info.Summary, Parameters: t.info.Params, Unchecked: t.problem}
			info.ReadOnly = t.def.Annotations != nil && t.def.Annotations.ReadOnlyHint
			if refusal := c.servers[name].refusal(t); refusal != nil {
				info.Refused = refusal.Message
			}
			result.Tools = append(result.Tools, info)
		}
		if asked.listing.omitted != "" {
			result.Omitted = append(result.Omitted, OmittedServer{name, asked.listing.omitted})
		}
	}
	return result, nil
}

// asked is a server's answer to a request for its tools.
type asked struct {
	listing *listing
	err     error
}

// ask requests the tools of servers concurrently.
func (c *Client) ask(ctx context.Context, host tea.Host, names []string) []asked {
	answers := make([]asked, len(names))
	var asking sync.WaitGroup
	for i, name := range names {
		asking.Go(func() {
			answers[i].listing, answers[i].err = again(func() (*listing, error) {
				_, l, err := c.servers[name].listing(ctx, host)
				return l, err
			})
		})
	}
	asking.Wait()
	return answers
}

// DescribeTools is the action mcp.describe_tools. A server that cannot be queried is an
// error, because the file would lack its tools. The caller shows the changes, so they
// are not reported.
func (c *Client) DescribeTools(ctx context.Context, _ *tea.Request, _ struct{}) (*Accepted, error) {
	names := c.names()
	result := &Accepted{Format: acceptedFormat, Servers: names, Actions: []AcceptedAction{}}
	var failed *tea.Error
	var texts []string
	for i, asked := range c.ask(ctx, nil, names) {
		if asked.err != nil {
			failed = tea.AsError(asked.err)
			texts = append(texts, failed.Message)
			continue
		}
		for _, t := range asked.listing.tools {
			result.Actions = append(result.Actions, AcceptedAction{
				t.info.Name, t.info.Summary, t.info.Params, t.info.Result, t.info.Streaming, t.info.Idempotent, names[i], t.def.Name, t.digest,
			})
		}
	}
	if failed != nil {
		e := *failed
		e.Message = strings.Join(texts, "; ")
		return nil, &e
	}
	return result, nil
}
