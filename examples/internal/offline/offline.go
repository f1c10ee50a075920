// Package offline replaces the network services of examples: a model with prepared answers, a search service, and a web
// site. Start with [Handler].
package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Answer is the model's answer to a request whose last message contains a text: a sentence, or a call of a tool.
type Answer struct {
	To        string         `yaml:"to"`
	Say       string         `yaml:"say"`
	Tool      string         `yaml:"tool"`
	Arguments map[string]any `yaml:"arguments"`
}

// Answers reads a YAML list of answers.
func Answers(file string) ([]Answer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []Answer
	if err := yaml.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}

// Handler serves the folder of an example: the pages in site, at /search the results in found.json in SearXNG's format,
// and at /v1/ a model with the answers in model.yaml. In both files SITE stands for the address of the server. asked,
// if not nil, is called with the text of each answer before it is sent.
func Handler(dir string, asked func(ctx context.Context, to string)) (http.Handler, error) {
	answers, err := Answers(filepath.Join(dir, "model.yaml"))
	if err != nil {
		return nil, err
	}
	found, err := os.ReadFile(filepath.Join(dir, "found.json"))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(filepath.Join(dir, "site"))))
	mux.Handle("/v1/", Model(answers, asked))
	mux.HandleFunc("/search", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		reply(w, fmt.Sprintf(`{"results": %s}`, strings.ReplaceAll(string(found), "SITE", site(r))))
	})
	return mux, nil
}

// site is the address of the server that got a request.
func site(r *http.Request) string { return "http://" + r.Host }

// Model is a server of OpenAI's protocol with prepared answers, streamed word by word. See [Handler] for asked.
func Model(answers []Answer, asked func(ctx context.Context, to string)) http.Handler {
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
		i := slices.IndexFunc(answers, func(a Answer) bool { return strings.Contains(last, a.To) })
		if i < 0 {
			http.Error(w, "no answer is prepared for: "+last, http.StatusBadRequest)
			return
		}
		if asked != nil {
			asked(r.Context(), answers[i].To)
		}
		message, finish := answers[i].message(site(r))
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
		reply(w, "data: [DONE]\n\n")
	})
}

func chunk(w io.Writer, v any) {
	raw, err := json.Marshal(v)
	if err == nil {
		reply(w, fmt.Sprintf("data: %s\n\n", raw))
	}
}

// reply writes a part of an answer. The client may have disconnected.
func reply(w io.Writer, text string) { _, _ = io.WriteString(w, text) }

// message returns the answer in the protocol's form.
func (a Answer) message(site string) (message map[string]any, finish string) {
	if a.Tool == "" {
		return map[string]any{"role": "assistant", "content": a.Say}, "stop"
	}
	arguments, err := json.Marshal(a.Arguments)
	if err != nil {
		arguments = []byte(err.Error()) // shows as arguments that are not JSON
	}
	text := strings.ReplaceAll(string(arguments), "SITE", site)
	call := map[string]any{"id": "call_1", "type": "function", "function": map[string]any{"name": a.Tool, "arguments": text}}
	return map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}}, "tool_calls"
}
