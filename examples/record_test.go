package examples

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// answer is what the stand-in for a model says to a request whose last
// message holds a text: a sentence, or the call of a tool.
type answer struct {
	To        string         `yaml:"to"`
	Say       string         `yaml:"say"`
	Tool      string         `yaml:"tool"`
	Arguments map[string]any `yaml:"arguments"`
}

// recordings gives what the examples' models say, by the example's folder.
func recordings() (map[string][]answer, error) {
	files, err := filepath.Glob("*/answers.yaml")
	if err != nil {
		return nil, err
	}
	all := map[string][]answer{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var answers []answer
		if err := yaml.Unmarshal(data, &answers); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all[filepath.Dir(file)] = answers
	}
	return all, nil
}

func TestEachAnswerIsRecorded(t *testing.T) {
	t.Parallel()
	all, err := recordings()
	if err != nil || len(all) == 0 {
		t.Fatalf("answers: %v, %v", all, err)
	}
	for example, answers := range all {
		recorded, err := os.ReadFile(filepath.Join(example, "answers.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(recorded), "\n"); n != len(answers) {
			t.Errorf("%s has %d recordings for %d answers; run with -update", example, n, len(answers))
		}
	}
}

// recordAll makes the recordings again that the examples play: each example
// with an answers.yaml runs against a local server of OpenAI's protocol which
// gives those answers.
func recordAll() error {
	all, err := recordings()
	if err != nil {
		return err
	}
	for example, answers := range all {
		if err := record(example, answers); err != nil {
			return fmt.Errorf("record %s: %w", example, err)
		}
	}
	return nil
}

func record(example string, answers []answer) (err error) {
	server := httptest.NewServer(model(answers))
	defer server.Close()
	dir, err := os.MkdirTemp("", "tea-record-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.CopyFS(dir, os.DirFS(example)); err != nil {
		return err
	}
	made := filepath.Join(dir, "answers.jsonl")
	if err := os.RemoveAll(made); err != nil {
		return err
	}
	overlay := fmt.Sprintf(`{"settings":{"llm":{"api_base":"%s/v1","replay":{"record":true,"provider":"openai"}}}}`, server.URL)
	script := "tea run workflow.yaml -q -C '" + overlay + "'"
	if _, err := os.Stat(filepath.Join(dir, "input.json")); err == nil {
		script += " -i @input.json"
	}
	res, err := shell(context.Background(), dir, dir, script)
	if err != nil {
		return err
	}
	if res.code != 0 && res.code != 130 {
		return fmt.Errorf("exit code %d\n%s%s", res.code, res.stdout, res.stderr)
	}
	data, err := os.ReadFile(made)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(data), "\n")
	slices.Sort(lines) // branches record in any order
	return os.WriteFile(filepath.Join(example, "answers.jsonl"), []byte(strings.Join(lines, "")), 0o644)
}

// model is a server of OpenAI's protocol that gives prepared answers, word by
// word where they are streamed.
func model(answers []answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Model    string                     `json:"model"`
			Stream   bool                       `json:"stream"`
			Messages []struct{ Content string } `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
			http.Error(w, fmt.Sprint("bad request: ", err), http.StatusBadRequest)
			return
		}
		last := req.Messages[len(req.Messages)-1].Content
		i := slices.IndexFunc(answers, func(a answer) bool { return strings.Contains(last, a.To) })
		if i < 0 {
			http.Error(w, "no answer is prepared for: "+last, http.StatusBadRequest)
			return
		}
		message, finish := answers[i].message()
		tokens := len(strings.Fields(answers[i].Say)) + 1
		usage := map[string]any{"prompt_tokens": len(strings.Fields(last)), "completion_tokens": tokens, "total_tokens": len(strings.Fields(last)) + tokens}
		if !req.Stream {
			_ = json.NewEncoder(w).Encode(map[string]any{
				"model": req.Model, "usage": usage,
				"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
			})
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, word := range strings.SplitAfter(answers[i].Say, " ") {
			chunk(w, map[string]any{"model": req.Model, "choices": []any{map[string]any{"index": 0, "delta": map[string]any{"content": word}}}})
		}
		chunk(w, map[string]any{"model": req.Model, "choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}})
		chunk(w, map[string]any{"model": req.Model, "choices": []any{}, "usage": usage})
		fmt.Fprint(w, "data: [DONE]\n\n")
	})
}

func chunk(w http.ResponseWriter, v any) {
	raw, err := json.Marshal(v)
	if err == nil {
		fmt.Fprintf(w, "data: %s\n\n", raw)
	}
}

// message is the answer as the protocol has it.
func (a answer) message() (message map[string]any, finish string) {
	if a.Tool == "" {
		return map[string]any{"role": "assistant", "content": a.Say}, "stop"
	}
	arguments, err := json.Marshal(a.Arguments)
	if err != nil {
		arguments = []byte(err.Error()) // shows as arguments that are not JSON
	}
	call := map[string]any{"id": "call_1", "type": "function", "function": map[string]any{"name": a.Tool, "arguments": string(arguments)}}
	return map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}}, "tool_calls"
}
