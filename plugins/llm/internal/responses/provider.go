package responses

import (
	"context"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/openai"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// Name is the name of the provider.
const Name = "openai-responses"

// Provider is a server that implements the protocol.
type Provider struct{ server *httpapi.Server }

var _ chat.Provider = (*Provider)(nil)

// New returns a provider. The server's base is that of chat completions, and its header
// contains the key.
func New(server *httpapi.Server) *Provider { return &Provider{server} }

// Chat implements [chat.Provider].
func (p *Provider) Chat(ctx context.Context, req *chat.Request, emit func(chat.Delta)) (*chat.Answer, error) {
	body, notSent := toBody(req)
	if emit != nil {
		body["stream"] = true
	}
	chat.Merge(body, req.Extra)
	var a *assembly
	err := p.server.Post(ctx, "responses", body, func(reply httpapi.Reply) error {
		a = &assembly{pieces: chat.Pieces{Emit: emit, Max: reply.MaxAnswer()}, said: map[int]bool{}}
		return chat.ReadAnswer(reply, p.server.TokenTimeout, &a.pieces, a)
	})
	if err != nil {
		return nil, p.server.Missing(err, addressHint)
	}
	answer := a.answer()
	answer.NotSent = notSent
	return answer, nil
}

// Embed implements [chat.Provider] with the older protocol, which has the embeddings.
func (p *Provider) Embed(ctx context.Context, req *chat.EmbedRequest) (*chat.Embeddings, error) {
	return openai.New(p.server).Embed(ctx, req)
}

// addressHint returns a possible mistake in the address of a server that answers
// not_found.
func addressHint(path string) string {
	if strings.HasSuffix(path, "v1") {
		return "the server may not have the Responses API; try provider: openai"
	}
	return "most servers need an api_base that ends in /v1"
}
