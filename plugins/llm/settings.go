package llm

import (
	"cmp"
	"encoding/json"
	"maps"

	"github.com/the-edge-agent/tea/plugins/llm/internal/anthropic"
	"github.com/the-edge-agent/tea/plugins/llm/internal/command"
	"github.com/the-edge-agent/tea/plugins/llm/internal/gemini"
	"github.com/the-edge-agent/tea/plugins/llm/internal/responses"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// settingsKey is the top-level key of a workflow's settings.
const settingsKey = "llm"

// Settings are the settings under settings.llm, for all calls of a workflow.
type Settings struct {
	Connection
	Fallbacks      []Fallback       `json:"fallbacks,omitempty" doc:"models or servers to ask in turn when a request fails: names of models, or objects with the connection's keys"`
	EmbeddingModel string           `json:"embedding_model,omitempty" doc:"model of embedding.create; default: model"`
	Temperature    *float64         `json:"temperature,omitempty" minimum:"0" doc:"default for every call"`
	MaxTokens      int              `json:"max_tokens,omitempty" minimum:"1" doc:"default for every call"`
	Replay         Replay           `json:"replay,omitzero" doc:"recordings, for provider: replay"`
	Prices         map[string]Price `json:"prices,omitempty" doc:"price by model, or by provider/model, for cost_usd and the budget; takes precedence over models"`
	Models         string           `json:"models,omitempty" format:"path" doc:"file that replaces the built-in table of models and prices"`
	// Providers are the connections that a model such as NAME/MODEL refers to.
	Providers map[string]Connection `json:"providers,omitempty" doc:"connection by name, for models written NAME/MODEL; a provider's name means that provider, any other name means openai unless provider is set"`
	// Agents are the agents that agent.run, and other agents, can call by name.
	Agents map[string]Agent `json:"agents,omitempty" doc:"agent by name, for agent.run"`
	// Commands are not part of a connection, because a call must not add to them.
	Commands map[string]command.Program `json:"commands,omitempty" doc:"the programs of provider: command by name, which is the model"`
}

// Connection is a server with its options. A call's parameters override the settings
// one by one.
type Connection struct {
	Provider              string            `json:"provider,omitempty" enum:"openai,openai-responses,anthropic,gemini,ollama,azure,command,replay" doc:"the protocol of the server; default openai, chat completions, which many servers implement. command asks a program of settings.llm.commands"`
	Model                 string            `json:"model,omitempty" doc:"the model's name at the server, or provider/model"`
	APIBase               string            `json:"api_base,omitempty" doc:"address of the server, or unix:/path/to.sock:/v1; default: the provider's, or Ollama on this machine"`
	APIKey                string            `json:"api_key,omitempty" secret:"true" doc:"key, if the server requires one"`
	APIVersion            string            `json:"api_version,omitempty" doc:"azure: version of the API; default 2024-10-21"`
	Deployment            string            `json:"deployment,omitempty" doc:"azure: name of the deployment; default: model"`
	Headers               map[string]string `json:"headers,omitempty" secret:"true" doc:"further HTTP headers"`
	CAFile                string            `json:"ca_file,omitempty" format:"path" doc:"file of certificates in PEM format to trust in addition to the system's; an absolute path in parameters"`
	TimeoutSeconds        *float64          `json:"timeout_seconds,omitempty" minimum:"0" doc:"limit for one complete answer, retries included; default 300, 0 = none"`
	TokenTimeoutSeconds   *float64          `json:"token_timeout_seconds,omitempty" minimum:"0" doc:"limit for the time between two tokens of a stream; default 60, 0 = none"`
	MaxRetries            *int              `json:"max_retries,omitempty" minimum:"0" doc:"retries after a transient failure; default 3. When the node itself is retried, each further attempt makes one request"`
	RetryAfterMaxSeconds  *float64          `json:"retry_after_max_seconds,omitempty" minimum:"0" doc:"longest wait that a server may ask for with Retry-After; a request that would wait longer fails, or falls back; default 60"`
	MaxAnswerBytes        int               `json:"max_answer_bytes,omitempty" minimum:"1" maximum:"16777216" doc:"limit for one answer, tool calls and reasoning included; default 4194304 (4 MiB)"`
	PromptCache           string            `json:"prompt_cache,omitempty" enum:"5m,1h,off" doc:"anthropic: how long the server caches the prompt; default 5m if the request has tools, otherwise off. Other servers cache by themselves"`
	Extra                 map[string]any    `json:"extra,omitempty" doc:"further members of the request's body; null removes one. A fallback to another provider has its own"`
	MaxConcurrentRequests int               `json:"max_concurrent_requests,omitempty" minimum:"0" doc:"requests that the server gets at the same time, others wait; default 0 = no limit"`

	// complete reports whether provider, api_base and model were set together.
	complete bool
}

// Replay configures the provider of the same name.
type Replay struct {
	File     string `json:"file,omitempty" format:"path" doc:"the recording, a file of JSON lines"`
	Record   bool   `json:"record,omitempty" doc:"ask the real provider and record its answers"`
	Provider string `json:"provider,omitempty" enum:"openai,openai-responses,anthropic,gemini,ollama,azure,command" doc:"the real provider; default openai, or that in the name of the model"`
}

// Names of the providers.
const (
	providerOpenAI    = "openai"
	providerResponses = responses.Name
	providerAnthropic = anthropic.Name
	providerGemini    = gemini.Name
	providerOllama    = "ollama"
	providerAzure     = "azure"
	providerCommand   = command.Name
	providerReplay    = "replay"
)

// limits returns the part of a connection that applies to any server.
func (c Connection) limits() Connection {
	return Connection{
		CAFile: c.CAFile, TimeoutSeconds: c.TimeoutSeconds, TokenTimeoutSeconds: c.TokenTimeoutSeconds,
		MaxRetries: c.MaxRetries, RetryAfterMaxSeconds: c.RetryAfterMaxSeconds, MaxAnswerBytes: c.MaxAnswerBytes, PromptCache: c.PromptCache,
	}
}

// over returns base overridden by c. Keys and headers are only sent to the server that
// they were set for: a call that names another provider or address must set them
// itself.
func (c Connection) over(base Connection) Connection {
	c.complete = c.complete || c.isComplete() || c.Model == "" && base.complete
	base.Provider = cmp.Or(base.Provider, providerOpenAI)
	if c.Provider != "" && c.Provider != base.Provider {
		base = base.limits()
	}
	if c.Model != "" {
		base.Deployment = "" // it belongs to the other model
	}
	if c.APIBase != "" && c.APIBase != base.APIBase {
		base.APIKey, base.Headers, base.MaxConcurrentRequests = "", nil, 0
	}
	c.Provider = cmp.Or(c.Provider, base.Provider)
	c.Model = cmp.Or(c.Model, base.Model)
	c.APIBase = cmp.Or(c.APIBase, base.APIBase)
	c.APIKey = cmp.Or(c.APIKey, base.APIKey)
	c.APIVersion = cmp.Or(c.APIVersion, base.APIVersion)
	c.Deployment = cmp.Or(c.Deployment, base.Deployment)
	c.CAFile = cmp.Or(c.CAFile, base.CAFile)
	c.TimeoutSeconds = cmp.Or(c.TimeoutSeconds, base.TimeoutSeconds)
	c.TokenTimeoutSeconds = cmp.Or(c.TokenTimeoutSeconds, base.TokenTimeoutSeconds)
	c.MaxRetries = cmp.Or(c.MaxRetries, base.MaxRetries)
	c.RetryAfterMaxSeconds = cmp.Or(c.RetryAfterMaxSeconds, base.RetryAfterMaxSeconds)
	c.MaxAnswerBytes = cmp.Or(c.MaxAnswerBytes, base.MaxAnswerBytes)
	c.MaxConcurrentRequests = cmp.Or(c.MaxConcurrentRequests, base.MaxConcurrentRequests)
	c.PromptCache = cmp.Or(c.PromptCache, base.PromptCache)
	if c.Extra == nil {
		c.Extra = base.Extra
	}
	headers := maps.Clone(base.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	maps.Copy(headers, c.Headers)
	c.Headers = headers
	return c
}

// Fallback is a connection. It may be written as the name of a model on the same
// server.
type Fallback struct{ Connection }

// JSONSchema describes both forms.
func (Fallback) JSONSchema() *schema.Schema {
	return &schema.Schema{AnyOf: []*schema.Schema{{Type: schema.Types{"string"}}, schema.Of[Connection]()}}
}

// UnmarshalJSON reads both forms.
func (f *Fallback) UnmarshalJSON(data []byte) error {
	var model string
	if json.Unmarshal(data, &model) == nil {
		*f = Fallback{Connection{Model: model}}
		return nil
	}
	return json.Unmarshal(data, &f.Connection)
}
