package llm_test

import (
	"maps"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

// The prompt of a call with model: ollama:llama3.2 went to OpenAI, or to whichever
// company the settings name.
func TestModelThatNamesItsProviderIsSentToAnotherCompany(t *testing.T) {
	t.Parallel()
	const here = "the address of the test's server"
	own := map[string]any{"model": "m", "api_base": here}
	for name, c := range map[string]struct {
		settings, params map[string]any
		parts            []string // of the error; nil if the request is sent
	}{
		"in a call":              {own, map[string]any{"model": "ollama:llama3.2"}, []string{`"ollama:llama3.2"`, "provider: ollama", "model: llama3.2"}},
		"with a tag":             {own, map[string]any{"model": "ollama:llama3.2:1b"}, []string{"provider: ollama", "model: llama3.2:1b"}},
		"in the settings":        {map[string]any{"model": "ollama:llama3.2", "api_base": here}, nil, []string{"provider: ollama", "model: llama3.2"}},
		"without a server":       {map[string]any{"model": "ollama:llama3.2"}, nil, []string{"provider: ollama", "model: llama3.2"}},
		"against the provider":   {map[string]any{"model": "ollama:llama3.2", "provider": "openai", "api_base": here}, nil, []string{"provider: ollama"}},
		"of the provider itself": {map[string]any{"model": "ollama:llama3.2", "provider": "ollama"}, nil, []string{"provider: ollama", "model: llama3.2"}},
		"azure":                  {own, map[string]any{"model": "Azure:gpt-4o"}, []string{"provider: azure", "model: gpt-4o"}},
		"a fallback":             {map[string]any{"model": "m", "api_base": here, "fallbacks": []any{"openai:gpt-4o"}}, nil, []string{"provider: openai", "model: gpt-4o"}},
		"another company":        {own, map[string]any{"model": "cohere:command-r"}, []string{`"cohere"`, "model: command-r", "provider", "api_base"}},
		"without a server, tag":  {map[string]any{"model": "mistral:7b"}, nil, []string{"OpenAI", "provider: ollama", "model: mistral:7b"}},
		"OpenAI by its address":  {map[string]any{"model": "mistral:7b", "api_base": "https://api.openai.com/v1"}, nil, []string{"OpenAI"}},
		"a tag at a server":      {own, map[string]any{"model": "llama3.2:1b"}, nil},
		"a path":                 {own, map[string]any{"model": "deepseek/deepseek-r1:free"}, nil},
		"all keys":               {map[string]any{"model": "anthropic:claude-3", "provider": "openai", "api_base": here}, nil, nil},
		"all keys, in a call":    {own, map[string]any{"model": "openai:gpt-4o", "provider": "openai", "api_base": here}, nil},
		"a model over all keys":  {map[string]any{"model": "anthropic:claude-3", "provider": "openai", "api_base": here}, map[string]any{"model": "groq:x"}, []string{`"groq"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servertest.Start(t, answerText("hello"))
			settings := maps.Clone(c.settings)
			if settings["api_base"] == here {
				settings["api_base"] = server.URL
			}
			params := map[string]any{"prompt": "private"}
			maps.Copy(params, c.params)
			if params["api_base"] == here {
				params["api_base"] = server.URL
			}
			_, err := call(t, new(teatest.Host), "llm.call", settings, params)
			sent := len(server.Seen())
			if c.parts == nil {
				if err != nil || sent != 1 {
					t.Errorf("%d requests, %v", sent, err)
				}
				return
			}
			if err == nil || err.Type != tea.ValidationError || sent != 0 {
				t.Fatalf("%d requests, %v", sent, err)
			}
			for _, part := range c.parts {
				if !strings.Contains(err.Message, part) {
					t.Errorf("%q is missing in %q", part, err.Message)
				}
			}
		})
	}
	_, err := call(t, nil, "embedding.create", map[string]any{"model": "m", "embedding_model": "ollama:nomic-embed-text"}, map[string]any{"input": "private"})
	if err == nil || !strings.Contains(err.Message, "provider: ollama") {
		t.Errorf("embedding.create: %v", err)
	}
}
