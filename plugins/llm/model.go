package llm

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

// vendors lists the providers that other programs write before a model, as in
// anthropic:claude. No model with a tag after the colon has one of these names.
var vendors = []string{
	providerOpenAI, providerOllama, providerAzure, providerReplay, providerAnthropic, providerGemini, providerResponses, providerCommand,
	"azure_ai", "azure_openai", "baseten", "bedrock", "bedrock_converse", "cerebras", "cohere", "deepseek", "fireworks", "github", "google",
	"google-gla", "google-vertex", "google_anthropic_vertex", "google_genai", "google_vertexai", "grok", "groq", "huggingface", "ibm", "litellm", "llamacpp", "lmstudio",
	"mistralai", "moonshotai", "nvidia", "openai-chat", "openrouter", "perplexity", "together", "upstage", "vercel", "vertexai", "vllm", "xai",
}

// providers are the protocols that a model such as anthropic/claude-x can name.
var providers = []string{providerOpenAI, providerResponses, providerAnthropic, providerGemini, providerOllama, providerAzure, providerCommand}

// connections resolves the parameters of a call and its fallbacks to servers. recorded
// reports whether the answers come from a recording, or are added to it.
func (s *Settings) connections(call Connection, fallbacks []Fallback) (conns []Connection, recorded bool) {
	recorded = cmp.Or(call.Provider, s.Provider) == providerReplay
	base := s.Connection
	if recorded {
		base.Provider = cmp.Or(s.Replay.Provider, base.Provider)
	}
	conn := s.resolve(call, s.resolve(base, Connection{}))
	conns = append(conns, conn)
	for _, f := range fallbacks {
		conns = append(conns, s.resolve(f.Connection, conn))
	}
	return conns, recorded
}

// resolve returns base overridden by c. A model of c such as NAME/MODEL selects the
// connection of that name in the settings, or the provider of that name. The name of a
// model stays whole if the server was set by its address: gateways have models with such
// names.
func (s *Settings) resolve(c, base Connection) Connection {
	if c.Provider == providerReplay {
		c.Provider = "" // connections knows
	}
	name, model, found := strings.Cut(c.Model, "/")
	if !found || model == "" || c.APIBase != "" {
		return c.over(base)
	}
	if named, ok := s.Providers[name]; ok && (c.Provider == "" || c.Provider == name) {
		if named.Provider == "" && slices.Contains(providers, name) {
			named.Provider = name
		}
		c.Model = model
		return c.over(named.over(base.limits()))
	}
	isGateway := cmp.Or(base.Provider, providerOpenAI) == providerOpenAI && !isOpenAI(base.APIBase)
	if slices.Contains(providers, name) && (c.Provider == name || c.Provider == "" && !isGateway) {
		c.Provider, c.Model = name, model
	}
	return c.over(base)
}

// isComplete reports whether the connection alone identifies the server of the model.
func (c Connection) isComplete() bool { return c.Provider != "" && c.APIBase != "" && c.Model != "" }

// checkModel refuses a model that names its provider, such as ollama:llama3.2: the
// request and its prompt would go to another company. It accepts the model if provider
// and api_base are set next to it, because they determine the server.
func (c Connection) checkModel() error {
	isOpenAIs := (c.Provider == providerOpenAI || c.Provider == providerResponses) && isOpenAI(c.APIBase)
	if name, _, found := strings.Cut(c.Model, "/"); found && isOpenAIs && !c.complete {
		return tea.Errorf(tea.ValidationError, "the model %q names the provider %q, which is neither one of tea nor in settings.llm.providers; add settings.llm.providers.%s with the api_base of its server, or set api_base; the providers are %s", c.Model, name, name, strings.Join(providers, ", "))
	}
	prefix, model, found := strings.Cut(c.Model, ":")
	if !found || strings.Contains(prefix, "/") {
		return nil
	}
	vendor := strings.ToLower(prefix)
	own := slices.Contains(vendors[:8], vendor)
	switch {
	case c.complete && (!slices.Contains(vendors[:4], vendor) || vendor == c.Provider):
		return nil
	case own:
		return tea.Errorf(tea.ValidationError, "the model %q names its provider; write model: %s/%s, or two keys, provider: %s and model: %s", c.Model, vendor, model, vendor, model)
	case slices.Contains(vendors, vendor):
		return tea.Errorf(tea.ValidationError, "the model %q names the provider %q, which tea does not support; write model: %s, with api_base set to the address of its server and provider to the protocol of that server (such as openai)", c.Model, prefix, model)
	case isOpenAIs && vendor != "ft": // ft: begins the name of a fine-tuned model
		return tea.Errorf(tea.ValidationError, "OpenAI has no model %q, and no other server is set; for an Ollama model write provider: ollama and model: %s; for another server set api_base", c.Model, c.Model)
	}
	return nil
}

// isOpenAI reports whether an address is OpenAI's; "" is the default and counts as one.
func isOpenAI(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (address == "" || u.Hostname() == "openai.com" || strings.HasSuffix(u.Hostname(), ".openai.com"))
}
