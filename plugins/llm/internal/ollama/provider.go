package ollama

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// DefaultBase is Ollama's default address.
const DefaultBase = "http://127.0.0.1:11434"

// Provider is an Ollama server.
type Provider struct{ server *httpapi.Server }

var _ chat.Provider = (*Provider)(nil)

// New returns a provider. The server's base is its address without a path.
func New(server *httpapi.Server) *Provider { return &Provider{server: server} }

// Chat implements [chat.Provider].
func (p *Provider) Chat(ctx context.Context, req *chat.Request, emit func(chat.Delta)) (*chat.Answer, error) {
	body, err := toBody(req)
	if err != nil {
		return nil, err
	}
	body["stream"] = emit != nil
	chat.Merge(body, req.Extra)
	var answer *chat.Answer
	err = p.server.Post(ctx, "api/chat", body, func(reply httpapi.Reply) (err error) {
		answer, err = readAnswer(reply, p.server.TokenTimeout, emit)
		return err
	})
	if err != nil {
		return nil, p.server.Missing(err, addressHint)
	}
	return answer, nil
}

// Embed implements [chat.Provider].
func (p *Provider) Embed(ctx context.Context, req *chat.EmbedRequest) (*chat.Embeddings, error) {
	body := map[string]any{"model": req.Model, "input": req.Input}
	if req.Dimensions > 0 {
		body["dimensions"] = req.Dimensions
	}
	chat.Merge(body, req.Extra)
	var result *chat.Embeddings
	err := p.server.Post(ctx, "api/embed", body, func(reply httpapi.Reply) error {
		raw, err := reply.ReadAll()
		if err != nil {
			return err
		}
		result, err = toEmbeddings(raw)
		if err == nil && len(result.Vectors) != len(req.Input) {
			err = tea.Errorf(tea.ConnectionError, "the server sent %d embeddings for %d inputs", len(result.Vectors), len(req.Input))
		}
		return err
	})
	if err != nil {
		return nil, p.server.Missing(err, addressHint)
	}
	return result, nil
}

// addressHint returns a possible mistake in the address of a server that answers
// not_found.
func addressHint(path string) string {
	if path == "" {
		return ""
	}
	return "for ollama, api_base is the address without a path"
}
