package anthropic

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

const (
	// DefaultBase is the address of Anthropic's server.
	DefaultBase = "https://api.anthropic.com"
	// VersionHeader is the header that selects the version of the protocol.
	VersionHeader = "Anthropic-Version"
	// Version is the version of the protocol.
	Version = "2023-06-01"
	// Name is the name of the provider.
	Name = "anthropic"
)

// Options are the settings that the protocol needs in addition to a request.
type Options struct {
	// Cache is how long the server caches the prompt: "5m", "1h", "off", or "" for
	// 5 minutes if the request has tools.
	Cache string
	// MaxTokens is the limit for an answer whose request has none; the protocol
	// requires one.
	MaxTokens int
}

// Provider is a server that implements the protocol.
type Provider struct {
	server  *httpapi.Server
	options Options
}

var _ chat.Provider = (*Provider)(nil)

// New returns a provider. The server's base is its address without a path, and its header
// contains the key and the version.
func New(server *httpapi.Server, options Options) *Provider { return &Provider{server, options} }

// Chat implements [chat.Provider].
func (p *Provider) Chat(ctx context.Context, req *chat.Request, emit func(chat.Delta)) (*chat.Answer, error) {
	body, notSent, err := p.toBody(req)
	if err != nil {
		return nil, err
	}
	if emit != nil {
		body["stream"] = true
	}
	chat.Merge(body, req.Extra)
	withoutImpossibleThinking(body)
	var a *assembly
	err = p.server.Post(ctx, "v1/messages", body, func(reply httpapi.Reply) error {
		a = &assembly{pieces: chat.Pieces{Emit: emit, Max: reply.MaxAnswer()}}
		return chat.ReadAnswer(reply, p.server.TokenTimeout, &a.pieces, a)
	})
	if err != nil {
		return nil, p.server.Missing(err, addressHint)
	}
	answer := a.answer()
	answer.NotSent = notSent
	return answer, nil
}

// Embed implements [chat.Provider].
func (p *Provider) Embed(context.Context, *chat.EmbedRequest) (*chat.Embeddings, error) {
	return nil, tea.Errorf(tea.ValidationError, "anthropic has no embeddings; set provider and embedding_model of another server for embedding.create")
}

// addressHint returns a possible mistake in the address of a server that answers
// not_found.
func addressHint(path string) string {
	if path == "" {
		return ""
	}
	return "for anthropic, api_base is the address without /v1"
}
