package llm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/llm"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// degrees is the schema of the answers in these tests.
var degrees = map[string]any{
	"type": "object", "properties": map[string]any{"degrees": map[string]any{"type": "integer"}}, "required": []any{"degrees"},
}

func TestStructuredAnswers(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"plain":                `{"degrees":21}`,
		"in a code fence":      "```json\n{\"degrees\":21}\n```",
		"in sentences":         `Here you are: {"degrees":21} - anything else?`,
		"in a fence with talk": "Sure!\n```\n{\"degrees\": 21}\n```\nHave a nice day.",
		"behind thinking":      "<think>{maybe 22?}</think>\n{\"degrees\":21}",
		"a whole number":       `{"degrees":21.0}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servertest.Start(t, answerText(text))
			got, err := call(t, nil, "llm.call", openAI(server), map[string]any{"prompt": "hi", "schema": degrees})
			if err != nil {
				t.Fatal(err)
			}
			if data := got["data"].(map[string]any); data["degrees"] != int64(21) && data["degrees"] != 21.0 {
				t.Errorf("data %v", data)
			}
			if n := len(server.Seen()); n != 1 {
				t.Errorf("%d requests", n)
			}
			format := server.Seen()[0].Body["response_format"].(map[string]any)
			if diff := cmp.Diff(any(degrees), format["json_schema"].(map[string]any)["schema"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Models answer with the list alone where the schema has an object with one list.
func TestListInPlaceOfAnObject(t *testing.T) {
	t.Parallel()
	integers := map[string]any{"type": "array", "items": map[string]any{"type": "integer"}}
	one := map[string]any{"type": "object", "properties": map[string]any{"steps": integers, "done": map[string]any{"type": "boolean"}}, "required": []any{"steps"}}
	two := map[string]any{"type": "object", "properties": map[string]any{"steps": integers, "others": integers}, "required": []any{"steps", "others"}}
	for _, c := range []struct {
		schema map[string]any
		text   string
		fits   bool
	}{
		{one, "Sure:\n```json\n[1, 2]\n```", true}, {one, `["a"]`, false}, {two, "[1]", false}, {degrees, "[21]", false},
	} {
		server := servertest.Start(t, answerText(c.text))
		got, err := call(t, nil, "llm.call", openAI(server), map[string]any{"prompt": "hi", "schema": c.schema, "max_repairs": 0})
		if (err == nil) != c.fits {
			t.Errorf("%s: %v, %v", c.text, got, err)
		}
		if diff := cmp.Diff(any(map[string]any{"steps": []any{int64(1), int64(2)}}), got["data"]); c.fits && diff != "" {
			t.Error(diff)
		}
	}
}

// The mistake is found when the workflow is loaded.
func TestCallWithoutAQuestionIsValid(t *testing.T) {
	t.Parallel()
	for _, a := range llm.Bundle().Actions {
		if a.Name == "embedding.create" {
			continue
		}
		s, err := jsonschema.Compile(a.Params)
		if err != nil {
			t.Fatal(err)
		}
		given := func(name string, v any) map[string]any {
			if a.Name == "agent.run" {
				return map[string]any{"agent": "a", name: v}
			}
			return map[string]any{name: v}
		}
		if problems := jsonschema.Join(s.Validate(given("stream", true))); problems != "needs prompt or messages" && a.Name != "llm.stream" {
			t.Errorf("%s: %q", a.Name, problems)
		}
		for name, v := range map[string]any{"prompt": "hi", "messages": []any{}} {
			if problems := s.Validate(given(name, v)); problems != nil {
				t.Errorf("%s %s: %v", a.Name, name, problems)
			}
		}
	}
}

func TestAnswersAreRepaired(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, answerText("about 21"), answerText(`{"degrees":"21"}`), answerText(`{"degrees":21}`))
	got, err := call(t, nil, "llm.call", openAI(server), map[string]any{"prompt": "hi", "schema": degrees})
	if err != nil {
		t.Fatal(err)
	}
	if got["repairs"] != int64(2) || got["content"] != `{"degrees":21}` || got["usage"].(map[string]any)["total_tokens"] != int64(45) {
		t.Errorf("got %v", got)
	}
	messages := server.Seen()[2].Body["messages"].([]any)
	if len(messages) != 5 {
		t.Fatalf("messages %v", messages)
	}
	last := messages[4].(map[string]any)["content"].(string)
	for _, part := range []string{"degrees", "integer", "JSON"} {
		if !strings.Contains(last, part) {
			t.Errorf("%q is not in %q", part, last)
		}
	}
}

func TestRepairsEnd(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, answerText("about 21"))
	_, err := call(t, nil, "llm.call", openAI(server), map[string]any{"prompt": "hi", "schema": degrees, "max_repairs": 1})
	if err == nil || err.Type != tea.ValidationError || err.Details["content"] != "about 21" {
		t.Errorf("got %v", err)
	}
	if n := len(server.Seen()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestServerThatRefusesTheFormat(t *testing.T) {
	t.Parallel()
	refused := servertest.Reply{Status: 400, Chunks: []string{`{"error":{"message":"unknown field response_format"}}`}}
	server := servertest.Start(t, refused, answerText(`{"degrees":21}`))
	got, err := call(t, nil, "llm.call", openAI(server), map[string]any{"prompt": "hi", "schema": degrees})
	if err != nil {
		t.Fatal(err)
	}
	second := server.Seen()[1].Body
	if second["response_format"] != nil || !strings.Contains(second["messages"].([]any)[0].(map[string]any)["content"].(string), `"degrees"`) {
		t.Errorf("second request %v", second)
	}
	if diff := cmp.Diff(map[string]any{"degrees": int64(21)}, got["data"]); diff != "" {
		t.Error(diff)
	}

	wrong := servertest.Reply{Status: 400, Chunks: []string{`{"error":{"message":"too many tokens"}}`}}
	_, err = call(t, nil, "llm.call", openAI(servertest.Start(t, wrong)), map[string]any{"prompt": "hi", "schema": degrees})
	if err == nil || err.Message != "HTTP 400: too many tokens" {
		t.Errorf("got %v", err)
	}
}

// A recording must hold the refusal too: the request without the format is
// found only by a call that learns again that the format is refused.
func TestRecordedRefusalOfTheFormat(t *testing.T) {
	t.Parallel()
	refused := servertest.Reply{Status: 400, Chunks: []string{`{"error":{"message":"unknown field response_format"}}`}}
	settings := openAI(servertest.Start(t, refused, answerText(`{"degrees":21}`)))
	settings["provider"] = "replay"
	replay := map[string]any{"file": t.TempDir() + "/answers.jsonl", "record": true}
	settings["replay"] = replay
	params := map[string]any{"prompt": "hi", "schema": degrees}
	recorded, err := call(t, nil, "llm.call", settings, params)
	if err != nil {
		t.Fatal(err)
	}
	delete(replay, "record")
	played, err := call(t, nil, "llm.call", settings, params)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withoutFields(recorded), withoutFields(played)); diff != "" {
		t.Error(diff)
	}
}

// The details of a recorded failure keep their integers: details.status was
// 400 when it was recorded and 400.0 when it was played back.
func TestRecordedFailureKeepsIntegers(t *testing.T) {
	t.Parallel()
	settings := openAI(servertest.Start(t, servertest.Reply{Status: 400, Chunks: []string{`{"error":{"message":"bad"}}`}}))
	settings["provider"] = "replay"
	replay := map[string]any{"file": t.TempDir() + "/answers.jsonl", "record": true}
	settings["replay"] = replay
	_, recorded := call(t, nil, "llm.call", settings, map[string]any{"prompt": "hi"})
	delete(replay, "record")
	_, played := call(t, nil, "llm.call", settings, map[string]any{"prompt": "hi"})
	if recorded == nil || played == nil {
		t.Fatalf("got %v and %v, want failures", recorded, played)
	}
	if diff := cmp.Diff(int64(400), played.Details["status"]); diff != "" {
		t.Error(diff)
	}
}

func TestResponseFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		format any
		answer string
		data   any
	}{
		{"json", "json", `[1]`, []any{int64(1)}},
		{"json_object", map[string]any{"type": "json_object"}, `{}`, map[string]any{}},
		{"OpenAI's form", map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "x", "schema": degrees}}, `{"degrees":1}`, map[string]any{"degrees": int64(1)}},
		{"text", "text", `{}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := call(t, nil, "llm.call", openAI(servertest.Start(t, answerText(c.answer))), map[string]any{"prompt": "hi", "response_format": c.format})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.data, got["data"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Only the first answer is streamed: a reader of the tokens could not tell
// where a repaired one begins.
func TestRepairsAreNotStreamed(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Chunks: []string{"data: {\"choices\":[{\"delta\":{\"content\":\"no\"},\"finish_reason\":\"stop\"}]}\n\n"}}, answerText(`{"degrees":21}`))
	host := &teatest.Host{}
	if _, err := call(t, host, "llm.stream", openAI(server), map[string]any{"prompt": "hi", "schema": degrees}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"no"}, host.Recorded().Tokens); diff != "" {
		t.Error(diff)
	}
}
