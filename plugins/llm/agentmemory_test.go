package llm_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// remembering returns a host with entries as its memory. ltm.search finds one note.
func remembering(entries members) *teatest.Host {
	return &teatest.Host{Actions: map[string]action{
		"ltm.store": func(_ context.Context, params any) (any, error) {
			p := params.(members)
			entries[p["key"].(string)] = p["value"]
			return members{"success": true}, nil
		},
		"ltm.retrieve": func(_ context.Context, params any) (any, error) {
			v, ok := entries[params.(members)["key"].(string)]
			return members{"success": true, "value": v, "found": ok}, nil
		},
		"ltm.search": func(_ context.Context, params any) (any, error) {
			if p := params.(members); p["query"] != "seal" || p["prefix"] != "agents/clerk/notes/" {
				return members{"results": []any{}}, nil
			}
			return members{"results": []any{members{"key": "agents/clerk/notes/a", "value": members{"text": "leaks"}}}}, nil
		},
	}}
}

func TestAgentKeepsNotes(t *testing.T) {
	t.Parallel()
	entries := members{}
	host := remembering(entries)
	agents := members{"clerk": members{"memory": true, "approve": []any{members{"tool": "memory_search", "arguments": members{"query": "secret"}, "then": "deny"}}}}
	_, s, err := runAgent(t, host, agents, members{"agent": "clerk"},
		says("", "memory_store", members{"name": "a", "text": "leaks"}, "memory_search", members{"query": "seal"}, "memory_search", members{"query": "x"}, "memory_search", members{"query": "secret"}), says("ok"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"memory_store", "memory_search"}, toolNames(s.seen[0])); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	results := told(s.seen[1])
	if diff := cmp.Diff([]string{"The note is kept.", "a: leaks\n", "No note has these words."}, results[:3]); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if len(host.Invocations()) != 5 { // two requests, one note, two searches
		t.Errorf("a denied search was made: %v", keysOf(host))
	}
	if diff := cmp.Diff(members{"agents/clerk/notes/a": members{"text": "leaks"}}, entries); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
}

func TestAgentContinuesItsSession(t *testing.T) {
	t.Parallel()
	entries := members{}
	agents := members{"clerk": members{"instructions": "Count."}}
	for _, prompt := range []string{"one", "two"} {
		host := remembering(entries)
		if _, _, err := runAgent(t, host, agents, members{"agent": "clerk", "session": "s 1", "prompt": prompt}, says(prompt+"!")); err != nil {
			t.Fatal(err)
		}
		keys := map[string][]string{"llm.call": {"request-1"}, "ltm.retrieve": {"session-load"}, "ltm.store": {"session-store"}}
		if diff := cmp.Diff(keys, keysOf(host)); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
	}
	message := func(role, text string) members { return members{"role": role, "content": text} }
	want := []any{message("user", "one"), message("assistant", "one!"), message("user", "two"), message("assistant", "two!")}
	if diff := cmp.Diff(members{"agents/clerk/sessions/s 1": members{"messages": want}}, entries); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	// What only another model understands is not sent: the agent may have a new one, or have
	// handed the conversation off.
	foreign := members{"role": "assistant", "content": "two!", "reasoning_content": "hm", "tool_calls": []any{members{"id": "c1", "type": "function", "signature": "x", "function": members{"name": "a", "arguments": "{}"}}}}
	entries["agents/clerk/sessions/s 2"] = members{"messages": []any{message("user", "two"), foreign, members{"role": "tool", "tool_call_id": "c1", "content": "ok"}}}
	_, s, err := runAgent(t, remembering(entries), agents, members{"agent": "clerk", "session": "s 2", "prompt": "x"}, says("ok"))
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := json.Marshal(s.seen[0]); err != nil || strings.Contains(string(raw), "reasoning_content") || strings.Contains(string(raw), "signature") || !strings.Contains(string(raw), "two!") {
		t.Errorf("request: %s %v", raw, err)
	}
	_, _, err = runAgent(t, remembering(entries), agents, members{"agent": "clerk", "session": "s 1", "messages": []any{message("user", "x")}}, says("ok"))
	if err == nil || err.Type != tea.ValidationError || err.Message != "use either session or messages" {
		t.Errorf("messages and session: %v", err)
	}
	entries["agents/clerk/sessions/bad"] = "text"
	if _, _, err = runAgent(t, remembering(entries), agents, members{"agent": "clerk", "session": "bad"}, says("ok")); err == nil || err.Type != tea.ValidationError {
		t.Errorf("another entry: %v", err)
	}
}
