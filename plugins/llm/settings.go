package llm

import (
	"cmp"
	"encoding/json"
	"maps"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
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
	Prices         map[string]Price `json:"prices,omitempty" doc:"price by model name, for cost_usd and the budget"`
}

// Connection is a server with its options. A call's parameters override the settings
// one by one.
type Connection struct {
	Provider              string            `json:"provider,omitempty" enum:"openai,ollama,azure,replay" doc:"the protocol of the server; default openai, which many servers implement"`
	Model                 string            `json:"model,omitempty" doc:"the model's name at the server"`
	APIBase               string            `json:"api_base,omitempty" doc:"address of the server, or unix:/path/to.sock:/v1; default: OpenAI, or Ollama on this machine"`
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
	MaxConcurrentRequests int               `json:"max_concurrent_requests,omitempty" minimum:"0" doc:"requests that the server gets at the same time, others wait; default 0 = no limit"`

	// complete reports that provider, api_base and model were set together.
	complete bool
}

// Replay configures the provider of the same name.
type Replay struct {
	File     string `json:"file,omitempty" format:"path" doc:"the recording, a file of JSON lines"`
	Record   bool   `json:"record,omitempty" doc:"ask the real provider and record its answers"`
	Provider string `json:"provider,omitempty" enum:"openai,ollama,azure" doc:"the real provider; default openai"`
}

// Names of the providers.
const (
	providerOpenAI = "openai"
	providerOllama = "ollama"
	providerAzure  = "azure"
	providerReplay = "replay"
)

// over returns base overridden by c. Keys and headers are only sent to the server that
// they were set for: a call that names another provider or address must set them
// itself. A recording can replace any provider, so switching to it keeps
// everything.
func (c Connection) over(base Connection) Connection {
	c.complete = c.isComplete() || c.Model == "" && (base.complete || base.isComplete())
	if base.Provider == "" {
		base.Provider = providerOpenAI
	}
	if c.Provider != "" && c.Provider != base.Provider && c.Provider != providerReplay {
		base = Connection{
			Provider: c.Provider, CAFile: base.CAFile,
			TimeoutSeconds: base.TimeoutSeconds, TokenTimeoutSeconds: base.TokenTimeoutSeconds,
			MaxRetries: base.MaxRetries, RetryAfterMaxSeconds: base.RetryAfterMaxSeconds, MaxAnswerBytes: base.MaxAnswerBytes,
		}
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

// Price is the price of a million tokens in US dollars.
type Price struct {
	Input       float64  `json:"input,omitempty" minimum:"0" doc:"USD per million tokens of input"`
	Output      float64  `json:"output,omitempty" minimum:"0" doc:"USD per million tokens of output, those of reasoning included"`
	CachedInput *float64 `json:"cached_input,omitempty" minimum:"0" doc:"USD per million tokens of input that the server read from its cache; default: input"`
	Reasoning   *float64 `json:"reasoning,omitempty" minimum:"0" doc:"USD per million tokens of reasoning; default: output"`
}

// cost prices the tokens of a request by the first model with a price; nil if none has
// one.
func cost(prices map[string]Price, usage chat.Usage, models ...string) *float64 {
	for _, model := range models {
		p, ok := prices[model]
		if !ok {
			continue
		}
		cached, reasoning := p.Input, p.Output
		if p.CachedInput != nil {
			cached = *p.CachedInput
		}
		if p.Reasoning != nil {
			reasoning = *p.Reasoning
		}
		usd := (float64(usage.InputTokens-usage.CachedTokens)*p.Input + float64(usage.CachedTokens)*cached +
			float64(usage.OutputTokens-usage.ReasoningTokens)*p.Output + float64(usage.ReasoningTokens)*reasoning) / 1e6
		return &usd
	}
	return nil
}
