package gemini

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

const (
	// DefaultBase is the address of Google's server.
	DefaultBase = "https://generativelanguage.googleapis.com"
	// KeyHeader is the header that contains the key.
	KeyHeader = "X-Goog-Api-Key" //nolint:gosec // a name
	// Name is the name of the provider.
	Name = "gemini"
)

// Provider is a server that implements the protocol.
type Provider struct{ server *httpapi.Server }

var _ chat.Provider = (*Provider)(nil)

// New returns a provider. The server's base is its address without a path, and its header
// contains the key.
func New(server *httpapi.Server) *Provider { return &Provider{server} }

// request returns the request for a method of a model.
func request(model, method string, body map[string]any) httpapi.Request {
	name := url.PathEscape(strings.TrimPrefix(model, "models/"))
	return httpapi.Request{Path: "v1beta/models/" + name + ":" + method, Body: body}
}

// Chat implements [chat.Provider].
func (p *Provider) Chat(ctx context.Context, req *chat.Request, emit func(chat.Delta)) (*chat.Answer, error) {
	body := toBody(req)
	chat.Merge(body, req.Extra)
	out := request(req.Model, "generateContent", body)
	if emit != nil {
		out = request(req.Model, "streamGenerateContent", body)
		out.Query = url.Values{"alt": {"sse"}}
	}
	var a *assembly
	err := p.server.Do(ctx, out, func(reply httpapi.Reply) error {
		a = &assembly{pieces: chat.Pieces{Emit: emit, Max: reply.MaxAnswer()}}
		return chat.ReadAnswer(reply, p.server.TokenTimeout, &a.pieces, a)
	})
	if err != nil {
		return nil, p.server.Missing(err, addressHint)
	}
	return a.answer(), nil
}

// Embed implements [chat.Provider]. The server does not count the tokens.
func (p *Provider) Embed(ctx context.Context, req *chat.EmbedRequest) (*chat.Embeddings, error) {
	requests := make([]any, len(req.Input))
	for i, text := range req.Input {
		one := map[string]any{"model": "models/" + strings.TrimPrefix(req.Model, "models/"), "content": map[string]any{"parts": []any{textPart(text)}}}
		if req.Dimensions > 0 {
			one["outputDimensionality"] = req.Dimensions
		}
		chat.Merge(one, req.Extra)
		requests[i] = one
	}
	var answer struct {
		Embeddings []struct {
			Values chat.Vector `json:"values"`
		} `json:"embeddings"`
		Error json.RawMessage `json:"error"`
	}
	err := p.server.Do(ctx, request(req.Model, "batchEmbedContents", map[string]any{"requests": requests}), func(reply httpapi.Reply) error {
		if err := reply.Decode(&answer, "embeddings"); err != nil {
			return err
		}
		if httpapi.IsError(answer.Error) {
			return httpapi.StreamError(answer.Error)
		}
		if len(answer.Embeddings) != len(req.Input) {
			return tea.Errorf(tea.ConnectionError, "the server sent %d embeddings for %d inputs", len(answer.Embeddings), len(req.Input))
		}
		return nil
	})
	if err != nil {
		return nil, p.server.Missing(err, addressHint)
	}
	e := &chat.Embeddings{Model: req.Model}
	for _, v := range answer.Embeddings {
		e.Vectors = append(e.Vectors, v.Values)
	}
	return e, nil
}

// addressHint returns a possible mistake in the address of a server that answers
// not_found.
func addressHint(path string) string {
	if path == "" {
		return ""
	}
	return "for gemini, api_base is the address without /v1beta"
}
