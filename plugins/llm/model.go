package llm

import (
	"net/url"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

// vendors are names that other programs write before a model, as in
// anthropic:claude. None is the name of a model, which has its tag after a colon.
var vendors = []string{
	providerOpenAI, providerOllama, providerAzure, providerReplay,
	"anthropic", "azure_ai", "azure_openai", "baseten", "bedrock", "bedrock_converse", "cerebras", "cohere", "deepseek", "fireworks", "gemini", "github", "google",
	"google-gla", "google-vertex", "google_anthropic_vertex", "google_genai", "google_vertexai", "grok", "groq", "huggingface", "ibm", "litellm", "llamacpp", "lmstudio",
	"mistralai", "moonshotai", "nvidia", "openai-chat", "openai-responses", "openrouter", "perplexity", "together", "upstage", "vercel", "vertexai", "vllm", "xai",
}

// isWhole reports whether the connection itself says which server has the model.
func (c Connection) isWhole() bool { return c.Provider != "" && c.APIBase != "" && c.Model != "" }

// checkModel refuses a model that names its provider, such as ollama:llama3.2: the
// request, with its prompt, would go to another company. A connection with the
// keys provider and api_base next to the model says where it goes.
func (c Connection) checkModel() error {
	prefix, model, found := strings.Cut(c.Model, ":")
	if !found || strings.Contains(prefix, "/") {
		return nil
	}
	vendor := strings.ToLower(prefix)
	own := slices.Contains(vendors[:4], vendor)
	switch {
	case c.whole && (!own || vendor == c.Provider):
		return nil
	case own:
		return tea.Errorf(tea.ValidationError, "the model %q names its provider; write two keys, provider: %s and model: %s", c.Model, vendor, model)
	case slices.Contains(vendors, vendor):
		return tea.Errorf(tea.ValidationError, "the model %q names the provider %q, which is none of tea's; write model: %s, with api_base, the address of its server, and provider, the protocol of that server (openai, ollama or azure)", c.Model, prefix, model)
	case c.Provider == providerOpenAI && isOpenAI(c.APIBase) && vendor != "ft": // a model that was tuned
		return tea.Errorf(tea.ValidationError, "OpenAI has no model %q, and no other server is set; for a model of Ollama write provider: ollama and model: %s, for that of another server its api_base", c.Model, c.Model)
	}
	return nil
}

// isOpenAI reports whether an address is that of the company; "" is.
func isOpenAI(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (address == "" || u.Hostname() == "openai.com" || strings.HasSuffix(u.Hostname(), ".openai.com"))
}
