package llm

import (
	"cmp"
	"maps"
)

// settingsKey is the top-level key of a workflow's settings.
const settingsKey = "llm"

// Settings are what a workflow sets under settings.llm, for all its calls.
type Settings struct {
	Connection
	EmbeddingModel string           `json:"embedding_model,omitempty" doc:"model of embedding.create; default: model"`
	Temperature    *float64         `json:"temperature,omitempty" minimum:"0" doc:"default for every call"`
	MaxTokens      int              `json:"max_tokens,omitempty" minimum:"1" doc:"default for every call"`
	Replay         Replay           `json:"replay,omitzero" doc:"recordings, for provider: replay"`
	Prices         map[string]Price `json:"prices,omitempty" doc:"price by model name, for cost_usd"`
}

// Connection says whom to ask and how. A call's parameters override the
// settings one by one.
type Connection struct {
	Provider            string            `json:"provider,omitempty" enum:"openai,ollama,azure,replay" doc:"the protocol of the server; default openai, which many servers speak"`
	Model               string            `json:"model,omitempty" doc:"the model's name at the server"`
	APIBase             string            `json:"api_base,omitempty" doc:"address of the server; default: OpenAI, or Ollama on this machine"`
	APIKey              string            `json:"api_key,omitempty" doc:"key, where the server wants one"`
	APIVersion          string            `json:"api_version,omitempty" doc:"azure: version of the API; default 2024-10-21"`
	Deployment          string            `json:"deployment,omitempty" doc:"azure: name of the deployment; default: model"`
	Headers             map[string]string `json:"headers,omitempty" doc:"further HTTP headers"`
	TimeoutSeconds      *float64          `json:"timeout_seconds,omitempty" minimum:"0" doc:"limit for one whole answer, tries included; default 300, 0 = none"`
	TokenTimeoutSeconds *float64          `json:"token_timeout_seconds,omitempty" minimum:"0" doc:"limit for the time between two tokens of a stream; default 60, 0 = none"`
	MaxRetries          *int              `json:"max_retries,omitempty" minimum:"0" doc:"further tries after a failure that may pass; default 3"`
}

// Replay configures the provider of the same name.
type Replay struct {
	File     string `json:"file,omitempty" doc:"the recording, a file of JSON lines"`
	Record   bool   `json:"record,omitempty" doc:"ask the real provider and record its answers"`
	Provider string `json:"provider,omitempty" enum:"openai,ollama,azure" doc:"the real provider; default openai"`
}

// Price is what a million tokens cost, in US dollars.
type Price struct {
	Input  float64 `json:"input,omitempty" minimum:"0"`
	Output float64 `json:"output,omitempty" minimum:"0"`
}

// Names of the providers.
const (
	providerOpenAI = "openai"
	providerOllama = "ollama"
	providerAzure  = "azure"
	providerReplay = "replay"
)

// over lays a call's connection over the settings'. Keys and headers go only
// to the server that they were set for: a call that names another provider or
// address brings its own. A recording stands for any provider, so switching
// to it keeps everything.
func (c Connection) over(base Connection) Connection {
	if base.Provider == "" {
		base.Provider = providerOpenAI
	}
	if c.Provider != "" && c.Provider != base.Provider && c.Provider != providerReplay {
		base = Connection{
			Provider:       c.Provider,
			TimeoutSeconds: base.TimeoutSeconds, TokenTimeoutSeconds: base.TokenTimeoutSeconds, MaxRetries: base.MaxRetries,
		}
	}
	if c.Model != "" {
		base.Deployment = "" // it is that of another model
	}
	if c.APIBase != "" && c.APIBase != base.APIBase {
		base.APIKey, base.Headers = "", nil
	}
	c.Provider = cmp.Or(c.Provider, base.Provider)
	c.Model = cmp.Or(c.Model, base.Model)
	c.APIBase = cmp.Or(c.APIBase, base.APIBase)
	c.APIKey = cmp.Or(c.APIKey, base.APIKey)
	c.APIVersion = cmp.Or(c.APIVersion, base.APIVersion)
	c.Deployment = cmp.Or(c.Deployment, base.Deployment)
	c.TimeoutSeconds = cmp.Or(c.TimeoutSeconds, base.TimeoutSeconds)
	c.TokenTimeoutSeconds = cmp.Or(c.TokenTimeoutSeconds, base.TokenTimeoutSeconds)
	c.MaxRetries = cmp.Or(c.MaxRetries, base.MaxRetries)
	headers := maps.Clone(base.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	maps.Copy(headers, c.Headers)
	c.Headers = headers
	return c
}
