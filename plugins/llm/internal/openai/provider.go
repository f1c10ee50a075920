package openai

import (
	"context"
	"net/url"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// DefaultBase is the address of OpenAI's server.
const DefaultBase = "https://api.openai.com/v1"

// Provider is a server that implements the protocol.
type Provider struct {
	server     *httpapi.Server
	deployment string
}

var _ chat.Provider = (*Provider)(nil)

// New returns a provider for a compatible server. If the server requires a key, it is
// in the server's header.
func New(server *httpapi.Server) *Provider { return &Provider{server: server} }

// NewAzure returns a provider for a deployment at Azure. The server's base is the
// resource's address, without a path.
func NewAzure(server *httpapi.Server, deployment, apiVersion string) *Provider {
	azure := *server
	separator := "?"
	if strings.Contains(azure.Base, "?") {
		separator = "&"
	}
	azure.Base += separator + url.Values{"api-version": {apiVersion}}.Encode()
	return &Provider{server: &azure, deployment: deployment}
}

func (p *Provider) path(operation string) string {
	if p.deployment == "" {
		return operation
	}
	return "openai/deployments/" + url.PathEscape(p.deployment) + "/" + operation
}

// addressHint returns a possible mistake in the address of a server that answers
// not_found.
func (p *Provider) addressHint(path string) string {
	switch {
	case p.deployment == "" && path == "":
		return "most servers need an api_base that ends in /v1"
	case p.deployment != "" && path != "":
		return "for azure, api_base is the address without a path"
	}
	return ""
}

// Chat implements [chat.Provider].
func (p *Provider) Chat(ctx context.Context, req *chat.Request, emit func(chat.Delta)) (*chat.Answer, error) {
	body := toBody(req)
	if emit != nil {
		body["stream"] = true
		body["stream_options"] = map[string]any{"include_usage": true}
	}
	chat.Merge(body, req.Extra)
	var answer *chat.Answer
	err := p.server.Post(ctx, p.path("chat/completions"), body, func(reply httpapi.Reply) (err error) {
		if emit == nil {
			answer, err = readAnswer(ctx, reply)
		} else {
			answer, err = readStream(ctx, reply, p.server.TokenTimeout, emit)
		}
		return err
	})
	if err != nil {
		return nil, p.server.Missing(err, p.addressHint)
	}
	return answer, nil
}
