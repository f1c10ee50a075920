package llm

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// The policies for the calls of a tool. A tool that the workflow names is called
// without a question, like every action that it names. If the server chooses the
// tools, or the model chooses which action is called, a person approves each call,
// unless the workflow says otherwise. A denied tool is not offered.
const (
	approveAuto = "auto"
	approveAsk  = "ask"
	approveDeny = "deny"
)

// allTools ends a spec for all tools of a server.
const allTools = ".*"

// choosers are the actions whose parameters name the action to call.
var choosers = []string{"agent.run", "llm.tools", "mcp.call", "plan.execute"}

// policy returns the policy for the calls of a tool that the workflow names.
func policy(spec ToolSpec) string {
	if spec.Approval == "" && slices.Contains(choosers, spec.Action) {
		return approveAsk
	}
	return cmp.Or(spec.Approval, approveAuto)
}

// expand replaces a spec for all tools of a server, as in mcp.files.*, with one spec per
// tool, and removes denied tools. A spec that names a tool takes precedence over the
// server's. A denial also applies to other specs of the tool.
func expand(ctx context.Context, host tea.Host, specs []ToolSpec) ([]ToolSpec, error) {
	named, denied := map[string]bool{}, map[string]bool{}
	for _, spec := range specs {
		named[spec.Action] = true
		if spec.Approval == approveDeny {
			denied[spec.Action] = true
		}
	}
	var all []ToolSpec
	offered := map[string]bool{} // the tools of whole servers
	for _, spec := range specs {
		if denied[spec.Action] {
			continue
		}
		server, whole := strings.CutSuffix(spec.Action, allTools)
		if !whole {
			spec.Approval = policy(spec)
			all = append(all, spec)
			continue
		}
		tools, err := toolsOf(ctx, host, spec, server)
		if err != nil {
			return nil, err
		}
		if err := mustList(server, tools, denied); err != nil {
			return nil, err
		}
		for _, t := range tools {
			offered[t.Action] = true
			switch {
			case named[t.Action]:
			case t.Refused != "":
				host.Log(ctx, slog.LevelWarn, "the model does not get the tool "+t.Action+": "+t.Refused, nil)
			default:
				all = append(all, ToolSpec{Name: t.Action, Description: t.Description, Parameters: t.Parameters, Action: t.Action, Approval: cmp.Or(spec.Approval, approveAsk)})
			}
		}
	}
	for _, action := range slices.Sorted(maps.Keys(denied)) {
		if len(offered) == 0 || offered[action] || strings.HasSuffix(action, allTools) {
			continue
		}
		denied := tool{name: action, action: action}
		if err := denied.describe(ctx, host); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// toolsOf returns the tools for the spec of a whole server.
func toolsOf(ctx context.Context, host tea.Host, spec ToolSpec, server string) ([]listedTool, error) {
	namespace, name, ok := strings.Cut(server, ".")
	if !ok || spec.Name != spec.Action || spec.Description != "" || spec.Parameters != nil {
		return nil, tea.Errorf(tea.ValidationError, "tool %q: write NAMESPACE.SERVER.*, such as mcp.files.*, without a name, description or parameters", spec.Action)
	}
	return listTools(ctx, host, namespace, name)
}

// mustList returns an error for a denied tool that the server does not have: if its
// name is misspelled, the intended tool would be offered.
func mustList(server string, tools []listedTool, denied map[string]bool) error {
	namespace, name, _ := strings.Cut(server, ".")
	prefix := namespace + "." + name + "_"
	for _, action := range slices.Sorted(maps.Keys(denied)) {
		listed := func(t listedTool) bool { return t.Action == action }
		if !strings.HasPrefix(action, prefix) || slices.ContainsFunc(tools, listed) {
			continue
		}
		names := make([]string, len(tools))
		for i, t := range tools {
			names[i] = t.Action
		}
		return tea.Errorf(tea.NotFound, "the denied tool %s is not a tool of the server %s%s", action, name, diag.Ending(action, names))
	}
	return nil
}

// listedTool is a tool in the result of NAMESPACE.list_tools.
type listedTool struct {
	Action      string         `json:"action"`
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters"`
	Refused     string         `json:"refused"`
}

// listTools returns the tools of a server, as mcp.list_tools does.
func listTools(ctx context.Context, host tea.Host, namespace, server string) ([]listedTool, error) {
	resp, err := host.Invoke(ctx, namespace+".list_tools", map[string]any{"server": server})
	if err != nil {
		return nil, err
	}
	var list struct {
		Tools []listedTool `json:"tools"`
	}
	if err := resp.Result.Decode(&list); err != nil {
		return nil, tea.Errorf(tea.InternalError, "result of %s.list_tools: %w", namespace, err)
	}
	return list.Tools, nil
}

// describeListed uses the description in the server's list, because there is no other
// one before the tools of a server are stored. It reports whether the list has the
// tool.
func (t *tool) describeListed(ctx context.Context, host tea.Host) (found bool, err error) {
	namespace, verb, _ := strings.Cut(t.action, ".")
	server, _, ok := strings.Cut(verb, "_")
	if _, err := host.Describe(ctx, namespace+".list_tools"); err != nil || !ok {
		return false, nil // the actions of this namespace are not tools of servers
	}
	listed, err := listTools(ctx, host, namespace, server)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(listed, func(l listedTool) bool { return l.Action == t.action })
	if i < 0 {
		return false, nil
	}
	t.wire.Description = cmp.Or(t.wire.Description, listed[i].Description)
	t.wire.Parameters = listed[i].Parameters
	return true, nil
}

// maxShownArguments is the maximum size in bytes of the arguments in a question.
const maxShownArguments = 2000

// visible escapes the characters of a JSON text that are invisible or change the
// displayed order of others.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if !unicode.IsPrint(r) {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// approve asks a person whether a call may be made. who is "The model", or the name of
// an agent. If the run stops to wait for the answer, it returns an error, as it does for
// a denial, which is sent to the model.
func approve(ctx context.Context, req *tea.Request, at place, who string, t *tool, arguments map[string]any) error {
	text, err := value.Encode(arguments)
	if err != nil {
		return err
	}
	resp, err := req.Invoke(ctx, tea.Invocation{Action: "human.ask", Key: at.approvalKey(), Params: map[string]any{
		"question": who + " asks to call " + t.action + " with " + plaintext.Cut(visible(string(text)), maxShownArguments),
		"choices":  []any{"approve", "deny"},
	}})
	if err != nil {
		return err
	}
	var result struct {
		Answer any `json:"answer"`
	}
	if err := resp.Result.Decode(&result); err != nil {
		return err
	}
	if result.Answer != "approve" {
		return tea.Errorf(tea.PermissionDenied, "a person denied this call of %s", t.name)
	}
	return nil
}
