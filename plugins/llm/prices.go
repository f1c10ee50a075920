package llm

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"os"
	"regexp"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Rates are prices of a million tokens in US dollars.
type Rates struct {
	Input          float64  `json:"input,omitempty" minimum:"0" doc:"USD per million tokens of input"`
	Output         float64  `json:"output,omitempty" minimum:"0" doc:"USD per million tokens of output, including reasoning"`
	CachedInput    *float64 `json:"cached_input,omitempty" minimum:"0" doc:"USD per million tokens of input that the server read from its cache; default: input"`
	CacheWrite     *float64 `json:"cache_write,omitempty" minimum:"0" doc:"USD per million tokens of input that the server wrote to its cache; default: input"`
	CacheWriteLong *float64 `json:"cache_write_long,omitempty" minimum:"0" doc:"the same for what it keeps for an hour; default: cache_write"`
	Reasoning      *float64 `json:"reasoning,omitempty" minimum:"0" doc:"USD per million tokens of reasoning; default: output"`
}

// Price is the price of a model.
type Price struct {
	Rates
	Above *Tier `json:"above,omitempty" doc:"prices of requests with a long input"`
}

// Tier are the prices of requests whose input is longer than Tokens.
type Tier struct {
	Tokens int `json:"tokens" minimum:"0" doc:"requests with more tokens of input have these prices"`
	Rates
}

// of returns the cost of a request in US dollars.
func (p *Price) of(usage chat.Usage) float64 {
	r := p.Rates
	if p.Above != nil && usage.InputTokens > p.Above.Tokens {
		r = p.Above.Rates
	}
	or := func(price *float64, otherwise float64) float64 {
		if price != nil {
			return *price
		}
		return otherwise
	}
	write := or(r.CacheWrite, r.Input)
	usd := 0.0
	for _, part := range []struct {
		tokens int
		price  float64
	}{
		{usage.InputTokens - usage.CachedTokens - usage.CacheWriteTokens, r.Input},
		{usage.CachedTokens, or(r.CachedInput, r.Input)},
		{usage.CacheWriteTokens - usage.CacheWriteLongTokens, write},
		{usage.CacheWriteLongTokens, or(r.CacheWriteLong, write)},
		{usage.OutputTokens - usage.ReasoningTokens, r.Output},
		{usage.ReasoningTokens, or(r.Reasoning, r.Output)},
	} {
		usd += float64(part.tokens) * part.price
	}
	return usd / 1e6
}

// builtinTable is the table of models without settings.llm.models.
//
//go:embed models.json
var builtinTable []byte

// table is a file of models and prices.
type table struct {
	// Models are the models by provider/model.
	Models map[string]*modelInfo `json:"models"`
}

type modelInfo struct {
	Price
	MaxOutput int `json:"max_output,omitempty"` // tokens
}

// readTable reads the table at a path; "" is the built-in one.
func readTable(path string) (*table, error) {
	raw := builtinTable
	if path != "" {
		var err error
		if raw, err = os.ReadFile(path); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "read settings.llm.models: %w", err)
		}
	}
	t := new(table)
	if err := json.Unmarshal(raw, t); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "settings.llm.models %s is not a table of models: %w", path, err)
	}
	if len(t.Models) == 0 {
		return nil, tea.Errorf(tea.ValidationError, `settings.llm.models %s has no models; it is {"models": {"PROVIDER/MODEL": {"input": USD, "output": USD}}}`, path)
	}
	return t, nil
}

// modelDate is the date at the end of the name of a model's version.
var modelDate = regexp.MustCompile(`-(\d{8}|\d{4}-\d{2}-\d{2})$`)

// find returns a model, or the one without the date of its version; nil if the table
// has neither.
func (t *table) find(provider, model string) *modelInfo {
	return cmp.Or(t.Models[provider+"/"+model], t.Models[provider+"/"+modelDate.ReplaceAllString(model, "")])
}

// pricedAs returns the provider of a connection in the table; "" if its server is not the
// provider's own, unless the table is the user's.
func (c *Client) pricedAs(conn Connection) string {
	isOpenAIs := conn.Provider == providerOpenAI || conn.Provider == providerResponses
	if c.settings.Models == "" && conn.APIBase != "" && !(isOpenAIs && isOpenAI(conn.APIBase)) {
		return ""
	}
	if isOpenAIs {
		return providerOpenAI // both protocols have the same models
	}
	return conn.Provider
}

// price returns the price of the first model that has one; nil if none has.
func (c *Client) price(t *target, models ...string) *Price {
	for _, model := range models {
		for _, name := range []string{model, t.priced + "/" + model} {
			if p, ok := c.settings.Prices[name]; ok {
				return &p
			}
		}
	}
	known, err := c.table()
	if err != nil {
		return nil // open has checked the user's table
	}
	for _, model := range models {
		if m := known.find(t.priced, model); m != nil && t.priced != "" {
			return &m.Price
		}
	}
	return nil
}

// maxDefaultOutput bounds the limit for the answers of models that could write far more
// than a call without max_tokens expects.
const maxDefaultOutput = 32000

// maxOutput returns the limit for answers of a connection's model; 0 if it is unknown.
func (c *Client) maxOutput(conn Connection) int {
	if known, err := c.table(); err == nil {
		if m := known.find(conn.Provider, conn.Model); m != nil {
			return min(m.MaxOutput, maxDefaultOutput)
		}
	}
	return 0
}
