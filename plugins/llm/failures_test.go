package llm_test

import (
	"context"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

// A schema that the workflow gave to a tool holds for the model's arguments
// also where the action itself would take anything, as one in Lua does.
func TestArgumentsMustFitTheToolsOwnSchema(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, wants([2]string{"lookup", `{"day":5}`}, [2]string{"lookup", `{}`}, [2]string{"lookup", `{"day":"today"}`}), answerText("ok"))
	var ran []any
	host := &teatest.Host{Actions: map[string]action{"mylua.read": func(_ context.Context, params any) (any, error) {
		ran = append(ran, params)
		return "done", nil
	}}}
	parameters := map[string]any{"type": "object", "properties": map[string]any{"day": map[string]any{"type": "string"}}, "required": []any{"day"}}
	spec := map[string]any{"name": "lookup", "description": "Looks up.", "action": "mylua.read", "parameters": parameters}
	got, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{spec}})
	if err != nil {
		t.Fatal(err)
	}
	if len(ran) != 1 {
		t.Errorf("the action ran with %v", ran)
	}
	told := toolMessages(server.Seen()[1])
	for id, part := range map[string]string{"c1": "day", "c2": "day", "c3": "done"} {
		if !strings.Contains(told[id], part) || strings.Contains(told[id], "validation_error") != (id != "c3") {
			t.Errorf("%s: the model was told %s", id, told[id])
		}
	}
	if first := got["tool_results"].([]any)[0].(map[string]any); first["success"] != false || first["error_type"] != "validation_error" {
		t.Errorf("got %v", first)
	}

	parameters["required"] = "day"
	_, err = call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{spec}})
	if err == nil || err.Type != tea.ValidationError || !strings.Contains(err.Message, "tools[0].parameters.required") {
		t.Errorf("a broken schema: got %v", err)
	}
}

// The format comes into play only when an answer has to be repaired: a server
// that refuses it then is not a reason to give up either.
func TestServerThatRefusesTheFormatOfARepair(t *testing.T) {
	t.Parallel()
	refused := servertest.Reply{Status: 400, Chunks: []string{`{"error":{"message":"unknown field response_format"}}`}}
	server := servertest.Start(t, answerText("warm"), refused, answerText("still warm"), answerText(`{"degrees":21}`))
	host := &teatest.Host{Actions: map[string]action{"math.add": func(context.Context, any) (any, error) { return nil, nil }}}
	got, err := call(t, host, "llm.tools", openAI(server), map[string]any{"prompt": "hi", "tools": []any{"math.add"}, "schema": degrees})
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := got["data"].(map[string]any); data["degrees"] != int64(21) || got["repairs"] != int64(2) {
		t.Errorf("got %v after %v repairs", got["data"], got["repairs"])
	}
	for i, want := range []bool{false, true, false, false} {
		if _, formatted := server.Seen()[i].Body["response_format"]; formatted != want {
			t.Errorf("request %d has a format: %v, want %v", i+1, formatted, want)
		}
	}
}

// What a user reads of a proxy's page is its title, not its markup.
func TestErrorPagesAreReadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ page, want string }{
		{"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx/1.24.0</center></body></html>", "HTTP 502: 502 Bad Gateway"},
		{"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><TITLE data-x=\"1\">\n api.example | 522: Connection timed&nbsp;out &amp; more\n</TITLE></head></html>", "HTTP 502: api.example | 522: Connection timed\u00a0out & more"},
		{"<!doctype html><p>gone fishing</p>", "HTTP 502: Bad Gateway"},
		{"<?xml version=\"1.0\"?><Error><Code>X</Code></Error>", "HTTP 502: <?xml version=\"1.0\"?><Error><Code>X</Code></Error>"},
	} {
		settings := openAI(servertest.Start(t, servertest.Reply{Status: 502, Header: map[string]string{"Content-Type": "text/html"}, Chunks: []string{c.page}}))
		settings["max_retries"] = 0
		_, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "hi"})
		if err == nil || err.Type != tea.ConnectionError || err.Message != c.want {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestNoSecretAtTheEndOfALongError(t *testing.T) {
	t.Parallel()
	for room := 995; room <= 1005; room++ {
		settings := openAI(servertest.Start(t, servertest.Reply{Status: 401, Chunks: []string{strings.Repeat("x", room-len("very-")) + "very-secret-key and more"}}))
		_, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "hi"})
		if err == nil || strings.Contains(err.Message, "very") || len(err.Message) > 1100 {
			t.Errorf("%d: got %v", room, err)
		}
	}
}

func TestErrorsDoNotShowSecretsOfTheAddress(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t,
		servertest.Reply{Status: 308, Header: map[string]string{"Location": "https://elsewhere.test/v1?key=query-secret"}},
		servertest.Reply{Status: 401, Chunks: []string{`no entry for user:url-password, query-secret`}})
	settings := openAI(server)
	settings["api_base"] = strings.Replace(server.URL, "://", "://user:url-password@", 1) + "/v1?key=query-secret"
	for _, want := range []string{"https://elsewhere.test/v1?key=***", "no entry for user:***, ***"} {
		_, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "hi"})
		if err == nil || !strings.Contains(err.Message, want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "password") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
