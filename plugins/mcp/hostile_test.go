package mcp_test

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestServersThatDoNotStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server map[string]any
		want   tea.ErrorType
		parts  []string
	}{
		{testServer("raw", "silent"), tea.Timeout, []string{"not ready within", "start_timeout_seconds"}},
		{testServer("raw", "endless"), tea.ConnectionError, []string{"MCP server s: connect", "its last output: xxx"}},
		{testServer("raw", "usage"), tea.ConnectionError, []string{"MCP server s: connect", "exit status 2", "usage: server DIRECTORY"}},
		{testServer("raw", "version"), tea.ConnectionError, []string{`unsupported protocol version: "1999-01-01"`}},
		{map[string]any{"command": "false"}, tea.ConnectionError, []string{"the process ended: exit status 1"}},
	} {
		t.Run(fmt.Sprint(c.parts), func(t *testing.T) {
			t.Parallel()
			timeout := 300.0
			if c.want == tea.Timeout {
				timeout = 0.5
			}
			client := open(t, with(c.server, "start_timeout_seconds", timeout))
			_, err := client.call(t.Context(), "mcp.s_echo", nil)
			refused(t, err, c.want, c.parts...)
		})
	}
}

func TestServersThatFailDuringACall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how   string
		want  tea.ErrorType
		parts []string
	}{
		{"close", tea.ConnectionError, []string{"exit status 3", "giving up"}},
		{"half", tea.ConnectionError, []string{"exit status 0"}},
		{"damaged", tea.ConnectionError, []string{"answer the call of the tool"}},
		{"stall", tea.Timeout, []string{`answer the call of the tool "echo" within 10s`, "settings.mcp.servers.s.timeout_seconds"}},
		{"huge", tea.ConnectionError, []string{"maximum line length"}},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			timeout, calls := 300.0, 2
			if c.want == tea.Timeout {
				timeout, calls = 10, 1
			}
			client := open(t, with(testServer("raw", c.how), "timeout_seconds", timeout))
			for range calls { // the second call starts the server again
				_, err := client.call(t.Context(), "mcp.s_echo", nil)
				refused(t, err, c.want, c.parts...)
			}
		})
	}
}

// An answer that cannot be decoded is the failure of one call: the server and its
// other calls go on.
func TestAnswerThatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("raw", "undecodable")))
	before := c.must(t, "mcp.s_echo", nil)["text"]
	_, err := c.call(t.Context(), "mcp.s_echo", map[string]any{"bad": true})
	refused(t, err, tea.ConnectionError, "illegal base64")
	if after := c.must(t, "mcp.s_echo", nil)["text"]; after != before {
		t.Errorf("the process is %v, was %v", after, before)
	}
}

func TestServerThatExits(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("good")))
	_, err := c.call(t.Context(), "mcp.s_exit", nil)
	refused(t, err, tea.ConnectionError, "exit status 7", "these are my last words")
	c.must(t, "mcp.s_add", map[string]any{"a": 1})
}

func TestServerThatFloodsItsErrorOutput(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("raw", "flood")))
	for range 20 {
		c.must(t, "mcp.s_echo", nil)
	}
}

// A server that fails to start again and again is left alone for a while.
func TestCircuitOpens(t *testing.T) {
	t.Parallel()
	c := open(t, with(map[string]any{"command": "false"}))
	for range 5 {
		_, err := c.call(t.Context(), "mcp.s_echo", nil)
		refused(t, err, tea.ConnectionError)
	}
	_, err := c.call(t.Context(), "mcp.s_echo", nil)
	refused(t, err, tea.CircuitOpen, "5 times in a row")
}

func actionsOf(t *testing.T, r map[string]any) map[string]string {
	t.Helper()
	actions := map[string]string{}
	for _, tool := range r["tools"].([]any) {
		tool := tool.(map[string]any)
		actions[fmt.Sprint(tool["action"])] = fmt.Sprint(tool["name"])
	}
	return actions
}

// Two tools must not have the same action: the order in which a server lists them
// would decide which one is called.
func TestToolsWithTheSameAction(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("raw", "twins")))
	r := c.must(t, "mcp.list_tools", nil)
	if diff := cmp.Diff(map[string]string{"mcp.s_a_b": "a_b"}, actionsOf(t, r)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	if omitted := fmt.Sprint(r["omitted"]); !strings.Contains(omitted, "mcp.s_a_b_c14cddc0") {
		t.Errorf("omitted: %s", omitted)
	}
}

func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("raw", "names")))
	r := c.must(t, "mcp.list_tools", nil)
	got := actionsOf(t, r)
	valid := regexp.MustCompile(`^mcp\.s_[a-z0-9_]{1,90}$`)
	for action := range got {
		if !valid.MatchString(action) {
			t.Errorf("the action %q is not valid", action)
		}
	}
	if len(got) != 9 {
		t.Errorf("%d actions, want 9: %v", len(got), got)
	}
	for action, name := range map[string]string{"mcp.s_a_b": "a_b", "mcp.s_get_tiny_image": "getTinyImage"} {
		if got[action] != name {
			t.Errorf("%s is %q, want %q", action, got[action], name)
		}
		if r := c.must(t, action, nil); r["text"] != name {
			t.Errorf("%s called %v", action, r["text"])
		}
	}
	for action, name := range got {
		if name == "a/b" || name == "日本語" {
			if r := c.must(t, action, nil); r["text"] != name {
				t.Errorf("%s called %v", action, r["text"])
			}
		}
	}
	if !strings.Contains(fmt.Sprint(r["omitted"]), "without a name or with a duplicate name") {
		t.Errorf("omitted: %v", r["omitted"])
	}
}

func TestTooManyTools(t *testing.T) {
	t.Parallel()
	for how, part := range map[string]string{"many": "only its first 1000 tools are used", "pages": "more than 100 pages"} {
		c := open(t, with(testServer("raw", how)))
		r := c.must(t, "mcp.list_tools", nil)
		if !strings.Contains(fmt.Sprint(r["omitted"]), part) {
			t.Errorf("%s: omitted is %v", how, r["omitted"])
		}
		if n := len(r["tools"].([]any)); n > 1000 {
			t.Errorf("%s: %d tools", how, n)
		}
	}
}

func TestLongDescription(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("raw", "descriptions")))
	tool := c.must(t, "mcp.list_tools", nil)["tools"].([]any)[0].(map[string]any)
	text, _ := tool["description"].(string)
	if len(text) > 5000 || !strings.Contains(text, "[cut off: ") || strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("%d bytes: %q", len(text), text[:100])
	}
}

func TestSchemasThatAreNotSupported(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("raw", "schemas")))
	unchecked := map[string]bool{}
	for _, tool := range c.must(t, "mcp.list_tools", nil)["tools"].([]any) {
		tool := tool.(map[string]any)
		name := fmt.Sprint(tool["name"])
		unchecked[name] = tool["unchecked"] != nil
		if name != "fine" && !strings.Contains(c.logged(), fmt.Sprintf("the parameters of the tool %q are not checked", name)) && unchecked[name] {
			t.Errorf("%s: no warning in:\n%s", name, c.logged())
		}
		if name == "fine" {
			continue
		}
		if r := c.must(t, fmt.Sprint(tool["action"]), nil); r["text"] != name {
			t.Errorf("%s: %v", name, r)
		}
	}
	want := map[string]bool{"fine": false, "dynamicref": true, "remote": true, "keyword": true, "text": true, "loop": true, "pattern": true, "none": true}
	if diff := cmp.Diff(want, unchecked); diff != "" {
		t.Errorf("unchecked (-want +got):\n%s", diff)
	}
	_, err := c.call(t.Context(), "mcp.s_fine", nil)
	refused(t, err, tea.ValidationError, "n")
}

func TestServerThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals")
	}
	c := open(t, with(testServer("raw", "deaf")))
	c.must(t, "mcp.s_echo", nil)
	if err := c.Close(); err != nil { // returns although the server does not follow
		t.Error(err)
	}
	_, err := c.call(t.Context(), "mcp.s_echo", nil)
	refused(t, err, tea.Canceled, "closed")
}
