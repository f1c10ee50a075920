package llm_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/llm"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// script answers llm.call with answers in turn, and keeps the requests.
type script struct {
	mu      sync.Mutex
	answers []map[string]any
	seen    []map[string]any
}

func (s *script) call(_ context.Context, params any) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, params.(map[string]any))
	if len(s.seen) > len(s.answers) {
		return nil, tea.Errorf(tea.ConnectionError, "no further answer")
	}
	return s.answers[len(s.seen)-1], nil
}

// says is an answer of llm.call. Calls are names and arguments in turn.
func says(text string, calls ...any) map[string]any {
	list := []any{}
	for i := 0; i < len(calls); i += 2 {
		list = append(list, map[string]any{"id": fmt.Sprint("c", i/2), "name": calls[i], "arguments": calls[i+1]})
	}
	reason := "stop"
	if len(list) > 0 {
		reason = "tool_calls"
	}
	return map[string]any{
		"success": true, "content": text, "message": map[string]any{"role": "assistant", "content": text, "tool_calls": list}, "tool_calls": list, "finish_reason": reason,
		"model": "m-1", "provider": "openai", "usage": map[string]any{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "estimated": false}, "cost_usd": 0.5,
		"latency_ms": 1,
	}
}

// members is a JSON object.
type members = map[string]any

// runAgent runs an agent whose model is a script.
func runAgent(t *testing.T, host *teatest.Host, agents, params members, answers ...map[string]any) (members, *script, *tea.Error) {
	t.Helper()
	s := &script{answers: answers}
	if host.Actions == nil {
		host.Actions = map[string]action{}
	}
	host.Actions["llm.call"] = s.call
	if params["prompt"] == nil {
		params["prompt"] = "go"
	}
	got, err := call(t, host, "agent.run", members{"model": "m", "agents": agents}, params)
	return got, s, err
}

// told returns what a request says of the results of tools, in order.
func told(request members) []string {
	var texts []string
	for _, m := range request["messages"].([]any) {
		if m := m.(members); m["role"] == "tool" {
			texts = append(texts, m["content"].(string))
		}
	}
	return texts
}

// toolNames returns the names of the tools that a request offers.
func toolNames(request members) []string {
	var names []string
	tools, _ := request["tools"].([]any)
	for _, t := range tools {
		names = append(names, t.(members)["name"].(string))
	}
	return names
}

// keysOf returns the keys of the calls that a host received, by action.
func keysOf(host *teatest.Host) map[string][]string {
	keys := map[string][]string{}
	for _, i := range host.Invocations() {
		keys[i.Action] = append(keys[i.Action], i.Key)
	}
	for _, list := range keys {
		slices.Sort(list)
	}
	return keys
}

func TestAgent(t *testing.T) {
	t.Parallel()
	host := adder()
	agents := members{"clerk": members{
		"instructions": "You calculate.", "model": "anthropic/m", "temperature": 0, "max_tokens": 99, "fallbacks": []any{"other"}, "tools": []any{"math.add"},
	}}
	got, s, err := runAgent(t, host, agents, members{"agent": "clerk", "prompt": "1+2?"},
		says("", "math_add", members{"x": 1, "y": 2}, "math_add", members{"x": 1, "y": 2}), says("It is 3."))
	if err != nil {
		t.Fatal(err)
	}
	first := s.seen[0]
	delete(first["tools"].([]any)[0].(members), "parameters")
	want := members{
		"system": "You calculate.", "model": "anthropic/m", "temperature": 0.0, "max_tokens": int64(99), "fallbacks": []any{members{"model": "other"}}, "stream": false,
		"messages": []any{members{"role": "user", "content": "1+2?"}}, "tools": []any{members{"name": "math_add", "description": "Adds."}},
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`{"sum":3}`, `{"sum":3}`}, told(s.seen[1])); diff != "" {
		t.Error(diff)
	}
	wantKeys := map[string][]string{"llm.call": {"request-1", "request-2"}, "math.add": {"tool-1-0.math_add", "tool-1-1.math_add"}}
	if diff := cmp.Diff(wantKeys, keysOf(host)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if got["content"] != "It is 3." || got["agent"] != "clerk" || got["rounds"] != int64(1) || got["cost_usd"] != 1.0 || got["usage"].(members)["total_tokens"] != int64(30) {
		t.Errorf("got %v", got)
	}
	calls := got["messages"].([]any)[1].(members)["tool_calls"].([]any)
	if len(got["messages"].([]any)) != 5 || calls[0].(members)["name"] != "math.add" || len(got["tool_results"].([]any)) != 2 {
		t.Errorf("messages %v", got["messages"])
	}
}

// What was recorded is not repeated, and a failed tool neither: the model has seen its
// failure.
func TestAgentContinues(t *testing.T) {
	t.Parallel()
	fails := func(context.Context, any) (any, error) { return nil, tea.Errorf(tea.QueryError, "broken") }
	definition := members{"tools": []any{"math.add", "fails", "crash"}, "todo": true}
	host := adder()
	host.Actions["fails"] = fails
	host.Actions["crash"] = func(context.Context, any) (any, error) { return nil, tea.Errorf(tea.Canceled, "the power went off") }
	answers := []map[string]any{
		says("", "math_add", members{"x": 1}, "fails", members{}, "todo_write", members{"items": []any{members{"task": "a", "status": "done"}}}),
		says("", "math_add", members{"x": 2}, "crash", members{}),
	}
	if _, _, err := runAgent(t, host, nil, members{"agent": definition}, answers...); err == nil || err.Type != tea.Canceled {
		t.Fatalf("got %v", err)
	}
	resumed := adder()
	resumed.Notes = host.Recorded().Notes
	resumed.Actions["fails"] = func(context.Context, any) (any, error) { return "works now", nil }
	resumed.Actions["crash"] = func(context.Context, any) (any, error) { return "fine", nil }
	got, s, err := runAgent(t, resumed, nil, members{"agent": definition}, says("done"))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.seen) != 1 {
		t.Errorf("the model was asked %d times", len(s.seen))
	}
	want := []string{`{"sum":1}`, `{"error":"broken","error_type":"query_error"}`, "todo: 1 of 1 done", `{"sum":2}`, `"fine"`}
	if diff := cmp.Diff(want, told(s.seen[0])); diff != "" {
		t.Error(diff)
	}
	if usage := got["usage"].(members)["total_tokens"]; usage != int64(45) {
		t.Errorf("%v tokens, want those of before the crash too", usage)
	}
	if diff := cmp.Diff([]any{members{"task": "a", "status": "done"}}, got["todo"]); diff != "" {
		t.Error(diff)
	}
}

func TestAgentOutput(t *testing.T) {
	t.Parallel()
	definition := members{"output": degrees, "tools": []any{"math.add"}}
	shaped := says(`{"degrees": 4}`)
	shaped["data"] = members{"degrees": 4}
	got, s, err := runAgent(t, adder(), nil, members{"agent": definition}, says("four"), shaped)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(members{"degrees": int64(4)}, got["data"]); diff != "" {
		t.Error(diff)
	}
	if s.seen[0]["schema"] != nil || !strings.Contains(s.seen[0]["system"].(string), `"degrees"`) {
		t.Errorf("the first request enforces the form, or does not name it: %v", s.seen[0])
	}
	if s.seen[1]["schema"] == nil || s.seen[1]["tool_choice"] != "none" {
		t.Errorf("repair %v", s.seen[1])
	}
	got, s, err = runAgent(t, adder(), nil, members{"agent": definition}, says(`{"degrees": 7}`))
	if err != nil || len(s.seen) != 1 || !cmp.Equal(got["data"], any(members{"degrees": int64(7)})) {
		t.Errorf("got %v, %v after %d requests", got["data"], err, len(s.seen))
	}
}

func TestAgentLimits(t *testing.T) {
	t.Parallel()
	again := says("", "math_add", members{"x": 1})
	for _, c := range []struct {
		name     string
		limits   members
		requests int
		err      tea.ErrorType
		contains string
	}{
		{"rounds", members{"rounds": 2}, 3, llm.MaxToolRounds, "raise limits.rounds"},
		{"tokens", members{"tokens": 30}, 2, llm.AgentLimit, "limit of 30 tokens"},
		{"cost", members{"usd": 0.6}, 2, llm.AgentLimit, "limits.usd"},
		{"time", members{"seconds": 1e-9}, 0, llm.AgentLimit, "limits.seconds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, s, err := runAgent(t, adder(), nil, members{"agent": members{"tools": []any{"math.add"}, "limits": c.limits}}, again, again, again, again)
			if err == nil || err.Type != c.err || !strings.Contains(err.Message, c.contains) || len(s.seen) != c.requests {
				t.Errorf("got %v after %d requests", err, len(s.seen))
			}
		})
	}
}

func TestWrongAgents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("# none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		agents   members
		agent    any
		contains string
	}{
		{"unknown agent", members{"writer": members{}}, "writr", `there is no agent "writr" in settings.llm.agents; did you mean "writer"?`},
		{"unknown agent of a team", members{"writer": members{}}, members{"agents": []any{"writr"}}, `there is no agent "writr"`},
		{"unknown agent in the settings", members{"a": members{"hand_off": []any{"b"}}}, "a", "is not in agents"},
		{"unknown key", nil, members{"instruction": "x"}, `did you mean "instructions"?`},
		{"negative limit", nil, members{"limits": members{"rounds": -1}}, "rounds"},
		{"unknown decision", nil, members{"approve": []any{members{"tool": "a", "then": "perhaps"}}}, "perhaps"},
		{"tool with a name of its own", nil, members{"todo": true, "tools": []any{members{"name": "todo_write", "action": "a.b", "parameters": members{"type": "object"}}}}, "todo_write"},
		{"relative skills", nil, members{"skills": []any{"skills"}}, "is not absolute"},
		{"skill without a head", nil, members{"skills": []any{dir}}, "does not begin with a line ---"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, s, err := runAgent(t, &teatest.Host{}, c.agents, members{"agent": c.agent})
			if err == nil || err.Type != tea.ValidationError || !strings.Contains(err.Message, c.contains) || len(s.seen) != 0 {
				t.Errorf("got %v after %d requests", err, len(s.seen))
			}
		})
	}
}

// A delegated task runs in a conversation of its own; the caller sees its answer, and
// pays for it.
func TestDelegation(t *testing.T) {
	t.Parallel()
	host := adder()
	var delegated []members
	host.Actions["agent.run"] = func(_ context.Context, params any) (any, error) {
		delegated = append(delegated, params.(members))
		return members{
			"success": true, "content": "It rains.", "agent": "weather", "finish_reason": "stop", "model": "m", "rounds": 0, "tool_results": []any{}, "messages": []any{},
			"usage": members{"input_tokens": 900, "output_tokens": 100, "total_tokens": 1000, "estimated": false}, "cost_usd": 2,
		}, nil
	}
	rules := []any{members{"tool": "a.*", "then": "ask"}}
	agents := members{
		"lead":    members{"agents": []any{"weather"}, "approve": rules, "limits": members{"tokens": 5000, "depth": 2}},
		"weather": members{"description": "Knows the weather.", "agents": []any{"lead"}},
	}
	got, s, err := runAgent(t, host, agents, members{"agent": "lead"}, says("", "delegate_weather", members{"task": "Is it wet?"}), says("Take an umbrella."))
	if err != nil {
		t.Fatal(err)
	}
	want := []members{{"agent": "weather", "prompt": "Is it wet?", "from": members{"approve": []any{rules}, "limits": members{"tokens": int64(4985), "depth": int64(1)}}}}
	if diff := cmp.Diff(want, delegated); diff != "" {
		t.Errorf("delegated (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"It rains."}, told(s.seen[1])); diff != "" {
		t.Error(diff)
	}
	if got["usage"].(members)["total_tokens"] != int64(1030) || got["cost_usd"] != 3.0 {
		t.Errorf("usage %v, %v", got["usage"], got["cost_usd"])
	}
	if keys := keysOf(host)["agent.run"]; !slices.Equal(keys, []string{"tool-1-0.delegate_weather"}) {
		t.Errorf("keys %v", keys)
	}
	if d := s.seen[0]["tools"].([]any)[0].(members)["description"]; !strings.Contains(d.(string), "Knows the weather.") {
		t.Errorf("description %q", d)
	}
	// At the last level there is nobody to delegate to.
	_, s, err = runAgent(t, adder(), agents, members{"agent": "weather", "from": members{"limits": members{"depth": 0}}}, says("ok"))
	if err != nil || len(toolNames(s.seen[0])) != 0 {
		t.Errorf("tools %v, %v", toolNames(s.seen[0]), err)
	}
}

// After a hand-off the other agent has the conversation, with its own instructions and
// tools, and with the rules of both.
func TestHandOff(t *testing.T) {
	t.Parallel()
	agents := members{
		"first":  members{"instructions": "I am first.", "hand_off": []any{"second"}, "approve": []any{members{"tool": "math.add", "then": "deny"}}},
		"second": members{"instructions": "I am second.", "model": "other", "tools": []any{"math.add"}, "approve": []any{members{"tool": "*", "then": "allow"}}},
	}
	host := adder()
	got, s, err := runAgent(t, host, agents, members{"agent": "first"},
		says("", "hand_off_second", members{"reason": "sums"}), says("", "math_add", members{"x": 1}), says("not allowed"))
	if err != nil {
		t.Fatal(err)
	}
	if got["agent"] != "second" || s.seen[1]["system"] != "I am second." || s.seen[1]["model"] != "other" || !slices.Equal(toolNames(s.seen[1]), []string{"math_add"}) {
		t.Errorf("agent %v, request %v", got["agent"], s.seen[1])
	}
	if results := told(s.seen[2]); len(results) != 2 || !strings.Contains(results[1], "a rule denies this call of math.add") {
		t.Errorf("told %v", results)
	}
	if len(keysOf(host)["math.add"]) != 0 {
		t.Error("a denied call was made")
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	rule := func(tool, then string, arguments members) members {
		r := members{"tool": tool, "then": then}
		if arguments != nil {
			r["arguments"] = arguments
		}
		return r
	}
	for _, c := range []struct {
		name      string
		own       []any
		above     []any
		tool      any
		arguments members
		asked     bool
		made      bool
	}{
		{"no rule", nil, nil, "math.add", members{}, false, true},
		{"the tool asks", nil, nil, members{"action": "math.add", "approval": "ask"}, members{}, true, true},
		{"a rule instead of the tool", []any{rule("math.*", "allow", nil)}, nil, members{"action": "math.add", "approval": "ask"}, members{}, false, true},
		{"the first that matches", []any{rule("other", "deny", nil), rule("math.add", "allow", nil), rule("*", "deny", nil)}, nil, "math.add", members{}, false, true},
		{"by action of a tool with another name", []any{rule("math.add", "deny", nil)}, nil, members{"name": "sum", "action": "math.add"}, members{}, false, false},
		{"number above", []any{rule("*", "deny", members{"x": "> 50"})}, nil, "math.add", members{"x": 51}, false, false},
		{"number as text", []any{rule("*", "deny", members{"x": "> 50"})}, nil, "math.add", members{"x": "51"}, false, false},
		{"number not above", []any{rule("*", "deny", members{"x": "> 50"})}, nil, "math.add", members{"x": 50}, false, true},
		{"value", []any{rule("*", "deny", members{"x": 5})}, nil, "math.add", members{"x": 5}, false, false},
		{"text", []any{rule("*", "deny", members{"path": "/etc/*.d/*"})}, nil, "math.add", members{"path": "/etc/init.d/x"}, false, false},
		{"other text", []any{rule("*", "deny", members{"path": "/etc/*"})}, nil, "math.add", members{"path": "/tmp/etc/x"}, false, true},
		{"missing argument", []any{rule("*", "deny", members{"path": "*"})}, nil, "math.add", members{}, false, true},
		{"above is stricter", []any{rule("*", "allow", nil)}, []any{rule("math.*", "ask", nil)}, "math.add", members{}, true, true},
		{"own is stricter", []any{rule("*", "deny", nil)}, []any{rule("*", "ask", nil)}, "math.add", members{}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			host := adder()
			host.Actions["human.ask"] = func(context.Context, any) (any, error) { return members{"answer": "approve"}, nil }
			tool := "math_add"
			if spec, ok := c.tool.(members); ok && spec["name"] != nil {
				tool = spec["name"].(string)
			}
			params := members{"agent": members{"tools": []any{c.tool}, "approve": c.own}}
			if c.own == nil {
				delete(params["agent"].(members), "approve")
			}
			if c.above != nil {
				params["from"] = members{"approve": []any{c.above}}
			}
			if _, _, err := runAgent(t, host, nil, params, says("", tool, c.arguments), says("ok")); err != nil {
				t.Fatal(err)
			}
			keys := keysOf(host)
			if asked, made := len(keys["human.ask"]) == 1, len(keys["math.add"]) == 1; asked != c.asked || made != c.made {
				t.Errorf("asked %v, made %v", asked, made)
			}
		})
	}
}

// Skills are listed by name and description, and read when they are needed; nothing
// outside of their directories is.
func TestSkills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"secret.txt":           "outside",
		"skills/pump/SKILL.md": "---\nname: pump\ndescription: >-\n  How to start\n  a pump. # really\nmetadata:\n  author: \"x\"\n---\nOpen the valve, see [limits](limits.md).\n", "skills/pump/limits.md": "60 C",
		"skills/quoted/SKILL.md": "---\r\nname: 'quoted'\r\ndescription: \"A: b\"\r\n---\r\n",
		"skills/notes.txt":       "not a skill", "skills/pump/large.md": strings.Repeat("x", 70_000),
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "secret.txt"), filepath.Join(dir, "skills/pump/link.md")); err != nil {
		t.Fatal(err)
	}
	read := func(name string, path ...string) []any {
		arguments := members{"name": name}
		if len(path) > 0 {
			arguments["path"] = path[0]
		}
		return []any{"skill_read", arguments}
	}
	calls := slices.Concat(read("pump"), read("pump", "limits.md"), read("pump", "../../secret.txt"), read("pump", "link.md"), read("pomp"), read("pump", "large.md"))
	_, s, err := runAgent(t, &teatest.Host{}, nil, members{"agent": members{"skills": []any{filepath.Join(dir, "skills")}}}, says("", calls...), says("ok"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"\n- pump: How to start a pump. # really", "\n- quoted: A: b"} {
		if system := s.seen[0]["system"].(string); !strings.Contains(system, line) || strings.Contains(system, "valve") {
			t.Errorf("no %q in %q", line, system)
		}
	}
	got := told(s.seen[1])
	for i, part := range []string{"Open the valve", "60 C", "contains ..", "permission_denied", `did you mean \"pump\"?`, "65536"} {
		if !strings.Contains(got[i], part) || strings.Contains(got[i], "outside") {
			t.Errorf("%d: no %q in %.200s", i, part, got[i])
		}
	}
}

// Above limits.context the results of tools are removed first, then whole rounds are
// replaced by a summary; the task and the last round stay.
func TestContextIsShortened(t *testing.T) {
	t.Parallel()
	host := &teatest.Host{Actions: map[string]action{"long": func(_ context.Context, params any) (any, error) {
		return strings.Repeat("r", 2000), nil
	}}}
	round := func(n int) map[string]any {
		return says(fmt.Sprintf("thought %d %s", n, strings.Repeat("t", 1000)), "long", members{"n": n})
	}
	params := members{"prompt": "the task", "agent": members{"tools": []any{"long"}, "limits": members{"context": 1500, "rounds": 20}}}
	got, s, err := runAgent(t, host, nil, params, round(1), round(2), round(3), round(4), says("it went well"), round(5), says("done"))
	if err != nil {
		t.Fatal(err)
	}
	trimmed := told(s.seen[2])
	if len(trimmed) != 2 || !strings.Contains(trimmed[0], "result of 2002 bytes removed") || len(trimmed[1]) < 2000 {
		t.Errorf("told %.100q", trimmed)
	}
	summary := slices.IndexFunc(s.seen, func(request members) bool { return request["messages"] == nil })
	if summary != 4 {
		t.Fatalf("request %d is the one for a summary", summary)
	}
	if prompt := s.seen[summary]["prompt"].(string); !strings.Contains(prompt, "thought 1") || strings.Contains(prompt, "thought 4") || s.seen[summary]["tools"] != nil {
		t.Errorf("summary of %.300s", prompt)
	}
	var shape []string
	for _, m := range s.seen[5]["messages"].([]any) {
		m := m.(members)
		shape = append(shape, m["role"].(string)+" "+fmt.Sprintf("%.9s", m["content"]))
	}
	if diff := cmp.Diff([]string{"user Summary o", "user the task", "assistant thought 4", `tool "rrrrrrrr`}, shape); diff != "" {
		t.Error(diff)
	}
	if got["content"] != "done" || len(got["tool_results"].([]any)) != 5 {
		t.Errorf("got %v", got["content"])
	}
	if keys := keysOf(host)["llm.call"]; !slices.Contains(keys, "summary-5") {
		t.Errorf("keys %v", keys)
	}
}

// A fallback's additions to its answer are not sent to the agent's own model.
func TestAdditionsOfAFallbackStayThere(t *testing.T) {
	t.Parallel()
	own, other := says("", "math_add", members{"x": 1}), says("", "math_add", members{"x": 2})
	for name, answer := range map[string]members{"own": own, "other": other} {
		m := maps.Clone(answer["message"].(members))
		m["reasoning_content"] = name
		answer["message"] = m
	}
	other["provider"] = "gemini"
	_, s, err := runAgent(t, adder(), nil, members{"agent": members{"tools": []any{"math.add"}}}, own, other, says("ok"))
	if err != nil {
		t.Fatal(err)
	}
	messages := s.seen[2]["messages"].([]any)
	if messages[1].(members)["reasoning_content"] != "own" || messages[3].(members)["reasoning_content"] != nil {
		t.Errorf("messages %v", messages)
	}
}
