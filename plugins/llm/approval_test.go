package llm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

// files is a host with the MCP server files. answer is a person's answer.
func files(answer any) *teatest.Host {
	tool := func(name string) map[string]any {
		return map[string]any{
			"server": "files", "name": name, "action": "mcp.files_" + name, "description": name + " does it.",
			"parameters": map[string]any{"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []any{"path"}},
		}
	}
	changed := tool("changed")
	changed["refused"] = "its definition has changed"
	done := func(context.Context, any) (any, error) { return map[string]any{"text": "done"}, nil }
	return &teatest.Host{Actions: map[string]action{
		"mcp.list_tools": func(_ context.Context, params any) (any, error) {
			if params.(map[string]any)["server"] != "files" {
				return nil, tea.Errorf(tea.NotFound, "unknown MCP server")
			}
			return map[string]any{"tools": []any{tool("read"), tool("write"), changed}}, nil
		},
		"mcp.files_read": done, "mcp.files_write": done, "mcp.files_changed": done,
		"human.ask": func(context.Context, any) (any, error) {
			if err, ok := answer.(error); ok {
				return nil, err
			}
			return map[string]any{"answer": answer}, nil
		},
	}}
}

// offered returns the names of the tools in a request.
func offered(seen servertest.Seen) []string {
	var names []string
	for _, t := range seen.Body["tools"].([]any) {
		names = append(names, t.(map[string]any)["function"].(map[string]any)["name"].(string))
	}
	return names
}

// invoked returns the actions that were called, without list_tools.
func invoked(host *teatest.Host) []string {
	var names []string
	for _, i := range host.Recorded().Invoked {
		if i.Action != "mcp.list_tools" {
			names = append(names, i.Action)
		}
	}
	return names
}

func TestApprovalOfTools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		tools   []any
		answer  any
		offered []string
		invoked []string
		told    string
	}{
		{"a whole server asks", []any{"mcp.files.*"}, "approve", []string{"mcp_files_read", "mcp_files_write"}, []string{"human.ask", "mcp.files_write"}, "done"},
		{"a person denies", []any{"mcp.files.*"}, "deny", []string{"mcp_files_read", "mcp_files_write"}, []string{"human.ask"}, "a person denied this call"},
		{"another answer denies", []any{"mcp.files.*"}, nil, []string{"mcp_files_read", "mcp_files_write"}, []string{"human.ask"}, "a person denied this call"},
		{"a whole server without questions", []any{map[string]any{"action": "mcp.files.*", "approval": "auto"}}, "deny", []string{"mcp_files_read", "mcp_files_write"}, []string{"mcp.files_write"}, "done"},
		{"a named tool does not ask", []any{"mcp.files_write"}, "deny", []string{"mcp_files_write"}, []string{"mcp.files_write"}, "done"},
		{"a named tool that asks", []any{map[string]any{"action": "mcp.files_write", "approval": "ask"}}, "deny", []string{"mcp_files_write"}, []string{"human.ask"}, "a person denied this call"},
		{"one tool of a server is denied", []any{"mcp.files.*", map[string]any{"action": "mcp.files_write", "approval": "deny"}}, "approve", []string{"mcp_files_read"}, nil, "there is no tool"},
		{"a denial counts for each spec of the tool", []any{"mcp.files.*", map[string]any{"name": "alias", "action": "mcp.files_write"}, map[string]any{"action": "mcp.files_write", "approval": "deny"}}, "approve", []string{"mcp_files_read"}, nil, "there is no tool"},
		{"a denial of a server counts for each spec of it", []any{"mcp.files.*", "mcp.files_read", map[string]any{"action": "mcp.files.*", "approval": "deny"}}, "approve", []string{"mcp_files_read"}, nil, "there is no tool"},
		{"one tool of a server is allowed", []any{map[string]any{"action": "mcp.files_write", "approval": "auto"}, "mcp.files.*"}, "deny", []string{"mcp_files_read", "mcp_files_write"}, []string{"mcp.files_write"}, "done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			host := files(c.answer)
			server := servertest.Start(t, wants([2]string{"mcp_files_write", `{"path": "x"}`}), answerText("finished"))
			if _, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": c.tools}); err != nil {
				t.Fatal(err)
			}
			seen := server.Seen()
			names := offered(seen[0])
			slices.Sort(names)
			if diff := cmp.Diff(c.offered, names); diff != "" {
				t.Errorf("offered (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.invoked, invoked(host)); diff != "" {
				t.Errorf("called (-want +got):\n%s", diff)
			}
			if told := toolMessages(seen[1])["c1"]; !strings.Contains(told, c.told) {
				t.Errorf("the model was told %s", told)
			}
		})
	}
}

func TestQuestionShowsTheArguments(t *testing.T) {
	t.Parallel()
	host := files("approve")
	server := servertest.Start(t, wants([2]string{"mcp_files_write", `{"path": "/etc/passwd"}`}), answerText("finished"))
	if _, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"mcp.files.*"}}); err != nil {
		t.Fatal(err)
	}
	asked := fmt.Sprint(host.Recorded().Invoked[1].Params)
	if !strings.Contains(asked, `mcp.files_write with {"path":"/etc/passwd"}`) {
		t.Errorf("asked %s", asked)
	}
	if logs := fmt.Sprint(host.Recorded().Logs); !strings.Contains(logs, "mcp.files_changed: its definition has changed") {
		t.Errorf("logs: %s", logs)
	}
}

// Characters that a terminal does not show, or that reverse the text after them,
// are escaped.
func TestQuestionShowsHiddenCharacters(t *testing.T) {
	t.Parallel()
	host := files("deny")
	server := servertest.Start(t, wants([2]string{"mcp_files_write", "{\"path\": \"pão \u202egnp.exe\u200b\u00a0\U000e0041\"}"}), answerText("finished"))
	if _, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"mcp.files.*"}}); err != nil {
		t.Fatal(err)
	}
	asked := fmt.Sprint(host.Recorded().Invoked[1].Params)
	if want := `{"path":"pão \u202egnp.exe\u200b\u00a0\udb40\udc41"}`; !strings.Contains(asked, want) {
		t.Errorf("asked %s, want %s", asked, want)
	}
}

// The reason why a server cannot be asked is the error, not that the action is
// unknown.
func TestToolOfAServerThatFails(t *testing.T) {
	t.Parallel()
	host := files("deny")
	host.Actions["mcp.list_tools"] = func(context.Context, any) (any, error) {
		return nil, tea.Errorf(tea.ConnectionError, "MCP server files: exit status 7")
	}
	_, err := call(t, host, "llm.tools", openAI(servertest.Start(t)), map[string]any{"prompt": "hi", "tools": []any{"mcp.files_other"}})
	if err == nil || err.Type != tea.ConnectionError || !strings.Contains(err.Message, "tool mcp.files_other: MCP server files: exit status 7") {
		t.Errorf("got %v", err)
	}
}

// A run that waits for the approval ends the call; the tool is not called.
func TestInterruptForAnApproval(t *testing.T) {
	t.Parallel()
	host := files(tea.Errorf(tea.Canceled, "the run waits for an answer"))
	server := servertest.Start(t, wants([2]string{"mcp_files_write", `{"path": "x"}`}))
	_, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"mcp.files.*"}})
	if e := tea.AsError(err); e == nil || e.Type != tea.Canceled {
		t.Errorf("got %v", err)
	}
	if got := invoked(host); !cmp.Equal(got, []string{"human.ask"}) {
		t.Errorf("called %v", got)
	}
}

func TestMistakesInToolsOfServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool any
		want string
	}{
		{"mcp.*", "write NAMESPACE.SERVER.*"},
		{map[string]any{"action": "mcp.files.*", "description": "all"}, "write NAMESPACE.SERVER.*"},
		{"mcp.nowhere.*", "unknown MCP server"},
		{map[string]any{"action": "mcp.files_wirte", "approval": "deny"}, `the denied tool mcp.files_wirte is not a tool of the server files; did you mean`},
		{map[string]any{"action": "actions.mcp_files_write", "approval": "deny"}, "tool actions.mcp_files_write: "},
		{map[string]any{"action": " mcp.files_write", "approval": "deny"}, "tool  mcp.files_write: "},
		{map[string]any{"action": "mcp.fles_write", "approval": "deny"}, "unknown MCP server"},
		{map[string]any{"action": "mcp.files.*", "approval": "maybe"}, "approval"},
	} {
		_, err := call(t, files("approve"), "llm.tools", openAI(servertest.Start(t)), map[string]any{"prompt": "hi", "tools": []any{c.tool, "mcp.files.*"}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.tool, err, c.want)
		}
	}
}

// An approval is for one call: an equal call in a later round is asked again, also
// if the run was resumed in between, when the first question is not asked.
func TestApprovalOfOneCallIsNotThatOfAnEqualOne(t *testing.T) {
	t.Parallel()
	params := map[string]any{"prompt": "hi", "tools": []any{"mcp.files.*"}}
	equal := wants([2]string{"mcp_files_write", `{"path": "x"}`})
	host := files("approve")
	if _, err := call(t, host, "llm.tools", openAI(servertest.Start(t, equal, servertest.Reply{Status: 400})), params); err == nil {
		t.Fatal("the model was to fail after the first round")
	}
	resumed := files("deny")
	resumed.Notes = host.Recorded().Notes
	server := servertest.Start(t, equal, answerText("finished"))
	if _, err := call(t, resumed, "llm.tools", openAI(server), params); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"human.ask"}, invoked(resumed)); diff != "" {
		t.Errorf("called (-want +got):\n%s", diff)
	}
	keys := map[string]bool{}
	for _, i := range append(host.Invocations(), resumed.Invocations()...) {
		if i.Action == "human.ask" {
			keys[i.Key] = true
		}
	}
	if len(keys) != 2 || keys[""] {
		t.Errorf("the questions have the keys %v", keys)
	}
}

// The model names the action that these call.
func TestActionsThatCallAnyToolAsk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool  any
		asked bool
	}{
		{"mcp.call", true},
		{map[string]any{"name": "mine", "action": "mcp.call"}, true},
		{map[string]any{"action": "mcp.call", "approval": "auto"}, false},
		{"plan.execute", true},
		{"llm.tools", true},
		{"mcp.read_resource", false},
	} {
		host := files("deny")
		name := "mine"
		for _, action := range []string{"mcp.call", "plan.execute", "llm.tools", "mcp.read_resource"} {
			host.Actions[action] = host.Actions["mcp.files_read"]
			if c.tool == action || fmt.Sprint(c.tool) == fmt.Sprintf("map[action:%s approval:auto]", action) {
				name = strings.ReplaceAll(action, ".", "_")
			}
		}
		server := servertest.Start(t, wants([2]string{name, `{}`}), answerText("finished"))
		if _, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{c.tool}}); err != nil {
			t.Fatal(err)
		}
		if got := invoked(host); (got[0] == "human.ask") != c.asked {
			t.Errorf("%v: called %v", c.tool, got)
		}
	}
}
