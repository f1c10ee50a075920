package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// shape is the required form of an answer: JSON that matches a schema if there is one.
// It is immutable.
type shape struct {
	text  string // the schema; "" for any JSON
	check *jsonschema.Schema
	// list is the only required member of the object if that member is a list: models
	// may answer with only the list.
	list string
}

// newShape compiles a format; nil for a nil format.
func newShape(f *chat.Format) (*shape, error) {
	if f == nil {
		return nil, nil
	}
	if f.Schema == nil {
		return &shape{}, nil
	}
	text, err := json.Marshal(f.Schema)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "schema: %w", err)
	}
	check, err := jsonschema.Compile(json.RawMessage(text))
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%w", err)
	}
	return &shape{text: string(text), check: check, list: onlyList(f.Schema)}, nil
}

// onlyList returns the only required member of an object's schema if that member is a
// list; otherwise "".
func onlyList(s map[string]any) string {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	if s["type"] != "object" || len(required) != 1 {
		return ""
	}
	name, _ := required[0].(string)
	if member, _ := properties[name].(map[string]any); member["type"] != "array" {
		return ""
	}
	return name
}

// instruction returns the message that describes the form of the answer.
func (s *shape) instruction() chat.Message {
	text := "Answer with JSON only, without any other text."
	if s.text != "" {
		text = "Answer only with JSON that matches this JSON Schema, without any other text:\n" + s.text
	}
	return chat.Text("system", text)
}

// parse finds and checks the JSON in an answer. Models wrap it in code fences or
// sentences; the first candidate that matches is used.
func (s *shape) parse(answer string) (any, error) {
	var notJSON, notFit error
	for _, text := range unwrapped(answer) {
		data, err := value.Decode([]byte(text))
		if err != nil {
			notJSON = cmp.Or(notJSON, fmt.Errorf("it is not JSON: %w", err))
			continue
		}
		if s.check == nil {
			return data, nil
		}
		problems := s.check.Validate(data)
		if len(problems) == 0 {
			return data, nil
		}
		if list, ok := data.([]any); ok && s.list != "" {
			object := map[string]any{s.list: list}
			if problems = s.check.Validate(object); len(problems) == 0 {
				return object, nil
			}
		}
		notFit = cmp.Or(notFit, fmt.Errorf("it does not match the schema: %s", jsonschema.Join(problems)))
	}
	return nil, cmp.Or(notFit, notJSON)
}

// unwrapped returns the texts that may be an answer's JSON, most likely first.
func unwrapped(answer string) []string {
	if i := strings.LastIndex(answer, "</think>"); i >= 0 {
		answer = answer[i+len("</think>"):]
	}
	answer = strings.TrimSpace(answer)
	texts := []string{answer}
	if _, rest, ok := strings.Cut(answer, "```"); ok {
		_, rest, _ = strings.Cut(rest, "\n") // the rest of the fence's line names the language
		inside, _, _ := strings.Cut(rest, "```")
		texts = append(texts, strings.TrimSpace(inside))
	}
	if start := strings.IndexAny(answer, "{["); start >= 0 {
		if end := strings.LastIndexAny(answer, "}]"); end > start {
			texts = append(texts, answer[start:end+1])
		}
	}
	return texts
}

// repairAnswer returns the data of an answer. If it does not match, it asks the model for a
// correction, up to maxRepairs times; corrections are not streamed. An answer that was
// cut off, withheld or refused is an error, because another request would not
// help.
func (x *exchange) repairAnswer(ctx context.Context, question *chat.Request, answer *chat.Answer, wanted *shape, maxRepairs int) (*chat.Answer, any, error) {
	repair := *question
	if len(repair.Tools) > 0 {
		repair.ToolChoice = "none"
	}
	for tries := 0; ; tries++ {
		data, problem := wanted.parse(answer.Text)
		if problem == nil {
			return answer, data, nil
		}
		if e := outcome(answer); e != nil {
			return nil, nil, e
		}
		if tries == maxRepairs {
			e := tea.Errorf(tea.ValidationError, "the model's answer is not usable after %d repairs (finish_reason %s): %w", tries, answer.FinishReason, problem)
			e.Details = map[string]any{"content": answer.Text, "finish_reason": answer.FinishReason}
			return nil, nil, e
		}
		repair.Messages = append(append([]chat.Message(nil), repair.Messages...),
			answer.Message(),
			chat.Text("user", fmt.Sprintf("This answer is not usable: %v\n%s", problem, wanted.instruction().Content.Text())))
		x.repairs++
		var err error
		if answer, err = x.askFormatted(ctx, &repair, false); err != nil {
			return nil, nil, err
		}
	}
}
