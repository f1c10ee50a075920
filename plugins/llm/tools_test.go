package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/llm"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

// wants is an answer that asks for tools; each call is {name, arguments}.
func wants(calls ...[2]string) servertest.Reply {
	var list []any
	for i, c := range calls {
		list = append(list, map[string]any{"id": fmt.Sprintf("c%d", i+1), "type": "function", "function": map[string]any{"name": c[0], "arguments": c[1]}})
	}
	raw, _ := json.Marshal(map[string]any{
		"choices": []any{map[string]any{"message": map[string]any{"content": nil, "tool_calls": list}, "finish_reason": "tool_calls"}},
		"usage":   map[string]any{"prompt_tokens": 10, "completion_tokens": 5},
	})
	return servertest.Reply{Chunks: []string{string(raw)}}
}

type action = func(context.Context, any) (any, error)

// adder is a host with the action math.add.
func adder() *teatest.Host {
	return &teatest.Host{
		Infos: map[string]tea.ActionInfo{"math.add": {Name: "math.add", Summary: "Adds.", Params: schema.Of[struct {
			X int `json:"x"`
			Y int `json:"y"`
		}]()}},
		Actions: map[string]action{"math.add": func(_ context.Context, params any) (any, error) {
			p := params.(map[string]any)
			x, _ := p["x"].(int64)
			y, _ := p["y"].(int64)
			return map[string]any{"sum": x + y}, nil
		}},
	}
}

// toolMessages returns the tool messages of a request, by the call they answer.
func toolMessages(seen servertest.Seen) map[string]string {
	told := map[string]string{}
	for _, m := range seen.Body["messages"].([]any) {
		if m := m.(map[string]any); m["role"] == "tool" {
			told[m["tool_call_id"].(string)] = m["content"].(string)
		}
	}
	return told
}

func TestTools(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, wants([2]string{"math_add", `{"x":1,"y":2}`}), answerText("It is 3."))
	host := adder()
	got, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "1+2?", "tools": []any{"math.add"}})
	if err != nil {
		t.Fatal(err)
	}
	wantTools := []any{map[string]any{"type": "function", "function": map[string]any{
		"name": "math_add", "description": "Adds.", "parameters": map[string]any{
			"type": "object", "additionalProperties": false, "required": []any{"x", "y"},
			"properties": map[string]any{"x": map[string]any{"type": "integer"}, "y": map[string]any{"type": "integer"}},
		},
	}}}
	if diff := cmp.Diff(wantTools, server.Seen()[0].Body["tools"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"c1": `{"sum":3}`}, toolMessages(server.Seen()[1])); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]teatest.Invoked{{Action: "math.add", Params: map[string]any{"x": int64(1), "y": int64(2)}}}, host.Recorded().Invoked); diff != "" {
		t.Error(diff)
	}
	arguments := map[string]any{"x": int64(1), "y": int64(2)}
	delete(got["tool_results"].([]any)[0].(map[string]any), "duration_ms")
	want := map[string]any{
		"success": true, "content": "It is 3.", "finish_reason": "stop", "model": "m-1", "provider": "openai", "rounds": int64(1),
		"message": map[string]any{"role": "assistant", "content": "It is 3."}, "tool_calls": []any{},
		"usage": map[string]any{"input_tokens": int64(20), "output_tokens": int64(10), "total_tokens": int64(30), "estimated": false},
		"tool_results": []any{map[string]any{
			"round": int64(1), "id": "c1", "name": "math.add", "arguments": arguments, "success": true, "content": `{"sum":3}`,
		}},
		"messages": []any{
			map[string]any{"role": "user", "content": "1+2?"},
			map[string]any{"role": "assistant", "content": "", "tool_calls": []any{map[string]any{"id": "c1", "name": "math.add", "arguments": arguments}}},
			map[string]any{"role": "tool", "tool_call_id": "c1", "content": `{"sum":3}`},
			map[string]any{"role": "assistant", "content": "It is 3."},
		},
	}
	if diff := cmp.Diff(want, withoutFields(got)); diff != "" {
		t.Error(diff)
	}
}

func TestToolsOfOtherNames(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, wants([2]string{"sum_up", `{"x":1}`}, [2]string{"a_b_2", `{}`}, [2]string{"a.b", `{}`}), answerText("ok"))
	host := adder()
	for _, name := range []string{"a.b", "a_b"} {
		host.Actions[name] = func(context.Context, any) (any, error) { return name, nil }
	}
	_, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{
		map[string]any{"name": "sum up", "description": "Mine.", "action": "math.add", "parameters": map[string]any{"type": "object"}},
		"a_b", "a.b",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"c1": `{"sum":1}`, "c2": `"a.b"`, "c3": `"a.b"`}, toolMessages(server.Seen()[1])); diff != "" {
		t.Error(diff)
	}
}

func TestToolsThatDoNotExist(t *testing.T) {
	t.Parallel()
	_, err := call(t, nil, "llm.tools", map[string]any{"model": "m"}, map[string]any{"prompt": "hi", "tools": []any{"math.add"}})
	if err == nil || err.Type != tea.NotFound || !strings.Contains(err.Message, "math.add") {
		t.Errorf("got %v", err)
	}
}

// What goes wrong in a tool is the model's to deal with.
func TestModelIsToldOfFailures(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, wants(
		[2]string{"math_add", `{"x":1`}, [2]string{"math_adn", `{}`}, [2]string{"fails", `{}`}, [2]string{"math_add", `[1]`}, [2]string{"math_add", ``}, [2]string{"math_add", `"{\"x\":4}"`},
	), answerText("sorry"))
	host := adder()
	host.Actions["fails"] = func(context.Context, any) (any, error) { return nil, tea.Errorf(tea.QueryError, `no "table"`) }
	got, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"math.add", "fails"}})
	if err != nil {
		t.Fatal(err)
	}
	told := toolMessages(server.Seen()[1])
	for id, part := range map[string]string{
		"c1": `"error_type":"validation_error"`, "c2": `did you mean \"math_add\"?`, "c3": `{"error":"no \"table\"","error_type":"query_error"}`,
		"c4": "must be a JSON object, not array", "c5": `{"sum":0}`, "c6": `{"sum":4}`,
	} {
		if !strings.Contains(told[id], part) {
			t.Errorf("%s: %q is not in %q", id, part, told[id])
		}
		if !json.Valid([]byte(told[id])) {
			t.Errorf("%s: %q is not JSON", id, told[id])
		}
	}
	if third := got["tool_results"].([]any)[2].(map[string]any); third["success"] != false || third["error_type"] != "query_error" {
		t.Errorf("got %v", third)
	}
}

func TestLongResultsAreCut(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, wants([2]string{"long", `{}`}), answerText("ok"))
	host := &teatest.Host{Actions: map[string]action{"long": func(context.Context, any) (any, error) { return strings.Repeat("é", 500), nil }}}
	if _, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"long"}, "max_result_bytes": 100}); err != nil {
		t.Fatal(err)
	}
	want := `"` + strings.Repeat("é", 49) + "... [cut off: 99 of 1002 bytes shown]"
	if got := toolMessages(server.Seen()[1])["c1"]; got != want {
		t.Errorf("got %q", got)
	}
}

// Calls of one round run at once, and their results stay in order.
func TestCallsOfOneRoundRunTogether(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, wants([2]string{"meet", `{"n":1}`}, [2]string{"meet", `{"n":2}`}), answerText("ok"))
	var both sync.WaitGroup
	both.Add(2)
	host := &teatest.Host{Actions: map[string]action{"meet": func(_ context.Context, params any) (any, error) {
		both.Done()
		both.Wait() // for ever, where one runs behind the other
		return params.(map[string]any)["n"], nil
	}}}
	if _, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"meet"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"c1": "1", "c2": "2"}, toolMessages(server.Seen()[1])); diff != "" {
		t.Error(diff)
	}
}

func TestRoundsEnd(t *testing.T) {
	t.Parallel()
	again := wants([2]string{"math_add", `{"x":1}`})
	params := map[string]any{"prompt": "hi", "tools": []any{"math.add"}, "max_tool_rounds": 2}

	server := servertest.Start(t, again, again, answerText("enough"))
	got, err := call(t, adder(), "llm.tools", openAI(server), params)
	if err != nil {
		t.Fatal(err)
	}
	if got["finish_reason"] != "max_tool_rounds" || got["content"] != "enough" || got["rounds"] != int64(2) {
		t.Errorf("got %v", got)
	}
	if choice := server.Seen()[2].Body["tool_choice"]; choice != "none" {
		t.Errorf("tool_choice %v", choice)
	}

	host := adder()
	_, err = call(t, host, "llm.tools", openAI(servertest.Start(t, again)), params)
	if err == nil || err.Type != llm.MaxToolRounds || err.Retryable {
		t.Errorf("got %v", err)
	}
	if n := len(host.Recorded().Invoked); n != 2 {
		t.Errorf("%d tools ran", n)
	}
}

func TestStructuredAnswerAfterTools(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, wants([2]string{"math_add", `{"x":20,"y":1}`}), answerText("about 21"), answerText(`{"degrees":21}`))
	got, err := call(t, adder(), "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"math.add"}, "schema": degrees})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"degrees": int64(21)}, got["data"]); diff != "" {
		t.Error(diff)
	}
	for i, held := range []bool{false, false, true} {
		if body := server.Seen()[i].Body; (body["response_format"] != nil) != held {
			t.Errorf("request %d: response_format %v", i, body["response_format"])
		}
	}
}

// After a crash a call with the same idempotency key goes on where it was:
// neither the model is asked nor a tool run a second time.
func TestCrashedToolsContinue(t *testing.T) {
	t.Parallel()
	params := map[string]any{"prompt": "hi", "tools": []any{"math.add", "crash"}}
	crash := tea.Errorf(tea.Canceled, "the power went off")
	host := adder()
	host.Actions["crash"] = func(context.Context, any) (any, error) { return nil, crash }
	first := wants([2]string{"math_add", `{"x":1}`})
	second := wants([2]string{"math_add", `{"x":2}`}, [2]string{"crash", `{}`})
	if _, err := call(t, host, "llm.tools", openAI(servertest.Start(t, first, second)), params); err == nil || err.Type != tea.Canceled {
		t.Fatalf("got %v", err)
	}

	resumed := adder()
	resumed.Actions["crash"] = func(context.Context, any) (any, error) { return "fine", nil }
	resumed.Notes = host.Recorded().Notes
	server := servertest.Start(t, answerText("done"))
	got, err := call(t, resumed, "llm.tools", openAI(server), params)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(server.Seen()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	for _, invoked := range resumed.Recorded().Invoked {
		if p := invoked.Params.(map[string]any); invoked.Action == "math.add" && p["x"] == int64(1) {
			t.Errorf("ran again: %v", invoked)
		}
	}
	messages := server.Seen()[0].Body["messages"].([]any)
	if len(messages) != 6 || got["rounds"] != int64(2) || len(got["tool_results"].([]any)) != 3 {
		t.Errorf("%d messages, result %v", len(messages), got)
	}
	if usage := got["usage"].(map[string]any); usage["total_tokens"] != int64(45) {
		t.Errorf("usage %v", usage)
	}

	another := adder()
	another.Notes = host.Recorded().Notes
	fresh, goErr := teatest.Call(t, llm.Bundle(), teatest.Request{
		Action: "llm.tools", Params: params, Settings: map[string]any{"llm": openAI(servertest.Start(t, answerText("fresh")))},
		Host: crashless(another), Call: tea.Call{IdempotencyKey: "another key"},
	})
	if goErr != nil || fresh.(map[string]any)["rounds"] != int64(0) {
		t.Errorf("another call read the notes: %v, %v", fresh, goErr)
	}
}

// Equal calls keep their idempotency keys after a crash, when those that were
// noted are not made again: the host must not distinguish them by order.
func TestEqualCallsHaveTheirOwnKeys(t *testing.T) {
	t.Parallel()
	params := map[string]any{"prompt": "hi", "tools": []any{"math.add", map[string]any{"name": "plus", "action": "math.add"}}}
	host := adder()
	rounds := []servertest.Reply{
		wants([2]string{"math_add", `{"x":1,"y":2}`}, [2]string{"plus", `{"y": 2, "x": 1}`}, [2]string{"math_add", `{"x":2}`}),
		wants([2]string{"math_add", `{"x":1,"y":2}`}), answerText("done"),
	}
	if _, err := call(t, host, "llm.tools", openAI(servertest.Start(t, rounds...)), params); err != nil {
		t.Fatal(err)
	}
	keys := map[string]int{}
	for _, i := range host.Invocations() {
		if i.Action == "math.add" {
			keys[i.Key]++
		}
	}
	// The first of equal calls needs no key.
	if diff := cmp.Diff(map[string]int{"": 2, "tool-1-1": 1, "tool-2-0": 1}, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// A tool that waits for a person ends the call, but not before the other
// tools of its round are done and noted.
func TestRoundIsFinishedBeforeTheCallWaits(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	host := &teatest.Host{Actions: map[string]action{
		"human.ask": func(context.Context, any) (any, error) {
			close(asked)
			return nil, tea.Errorf(tea.Canceled, "the run waits for an answer")
		},
		"slow": func(ctx context.Context, _ any) (any, error) {
			<-asked
			return "done", ctx.Err()
		},
	}}
	server := servertest.Start(t, wants([2]string{"human_ask", `{}`}, [2]string{"slow", `{}`}))
	_, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"human.ask", "slow"}})
	if err == nil || err.Type != tea.Canceled {
		t.Errorf("got %v", err)
	}
	notes := host.Recorded().Notes
	if notes["llm.tools/key/1/0"] != nil || notes["llm.tools/key/1/1"] == nil {
		t.Errorf("notes %v", notes)
	}
}

func crashless(host *teatest.Host) *teatest.Host {
	host.Actions["crash"] = func(context.Context, any) (any, error) { return "fine", nil }
	return host
}

func TestToolsStream(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t,
		servertest.Reply{Chunks: []string{`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"math_add","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\n"}},
		servertest.Reply{Chunks: []string{`data: {"choices":[{"delta":{"content":"o"}}]}` + "\n\n", `data: {"choices":[{"delta":{"content":"k"},"finish_reason":"stop"}]}` + "\n\n"}})
	host := adder()
	got, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"math.add"}, "stream": true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"o", "k"}, host.Recorded().Tokens); diff != "" || got["rounds"] != int64(1) {
		t.Errorf("%v %s", got["rounds"], diff)
	}
	if diff := cmp.Diff([]teatest.Progress{{Fraction: -1, Message: "round 1: math.add"}}, host.Recorded().Progress); diff != "" {
		t.Error(diff)
	}
}

// A server that sends calls without an id must not make two calls of a conversation
// the same.
func TestCallsWithoutIDGetOne(t *testing.T) {
	t.Parallel()
	nameless := servertest.Reply{Chunks: []string{`{"choices":[{"message":{"tool_calls":[{"function":{"name":"math_add","arguments":{}}},{"function":{"name":"math_add","arguments":{}}}]}}]}`}}
	server := servertest.Start(t, nameless, nameless, answerText("ok"))
	got, err := call(t, adder(), "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"math.add"}})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[any]bool{}
	for _, r := range got["tool_results"].([]any) {
		ids[r.(map[string]any)["id"]] = true
	}
	if len(ids) != 4 || ids[""] {
		t.Errorf("ids %v", ids)
	}
}
