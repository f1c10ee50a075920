package replay

import (
	"context"
	"slices"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Provider plays back the recordings of a file or adds to it.
type Provider struct {
	file *File
	real chat.Provider
}

var _ chat.Provider = (*Provider)(nil)

// New makes a provider. With real every request goes there and its answer is
// recorded; with nil the answers come from the file and nothing else.
func New(file *File, real chat.Provider) *Provider { return &Provider{file: file, real: real} }

// Chat asks for one answer, see [chat.Provider].
func (p *Provider) Chat(ctx context.Context, req *chat.Request, emit func(chat.Delta)) (*chat.Answer, error) {
	hash, err := hashOf("chat", req)
	if err != nil {
		return nil, err
	}
	if p.real != nil {
		return p.recordChat(ctx, hash, req, emit)
	}
	rec, err := p.file.find(hash)
	if err != nil {
		return nil, err
	}
	if rec.Refusal != nil {
		return nil, rec.Refusal.failure()
	}
	if rec.Answer == nil {
		return nil, tea.Errorf(tea.ValidationError, "the recording %s holds no answer", hash)
	}
	if emit != nil {
		for _, d := range rec.pieces() {
			if ctx.Err() != nil {
				return nil, tea.AsError(context.Cause(ctx))
			}
			emit(d)
		}
	}
	return clone(rec.Answer), nil
}

func (p *Provider) recordChat(ctx context.Context, hash string, req *chat.Request, emit func(chat.Delta)) (*chat.Answer, error) {
	rec := &Record{Hash: hash, Request: req}
	tee := emit
	if emit != nil {
		tee = func(d chat.Delta) {
			rec.Chunks = append(rec.Chunks, d)
			emit(d)
		}
	}
	answer, err := p.real.Chat(ctx, req, tee)
	if err != nil {
		return nil, p.recordRefusal(&Record{Hash: hash, Request: req}, err)
	}
	rec.Answer = clone(answer)
	return answer, p.file.add(rec)
}

// recordRefusal adds a failure that is as good as an answer, and gives it back.
func (p *Provider) recordRefusal(rec *Record, err error) error {
	if rec.Refusal = refusalOf(err); rec.Refusal == nil {
		return err
	}
	if addErr := p.file.add(rec); addErr != nil {
		return addErr
	}
	return err
}

// clone copies what the caller of a provider may change of its answer.
func clone(answer *chat.Answer) *chat.Answer {
	own := *answer
	own.ToolCalls = slices.Clone(answer.ToolCalls)
	return &own
}

// Embed gives one vector per input, see [chat.Provider].
func (p *Provider) Embed(ctx context.Context, req *chat.EmbedRequest) (*chat.Embeddings, error) {
	hash, err := hashOf("embed", req)
	if err != nil {
		return nil, err
	}
	if p.real != nil {
		result, err := p.real.Embed(ctx, req)
		if err != nil {
			return nil, p.recordRefusal(&Record{Hash: hash, EmbedRequest: req}, err)
		}
		return result, p.file.add(&Record{Hash: hash, EmbedRequest: req, Embeddings: result})
	}
	rec, err := p.file.find(hash)
	if err != nil {
		return nil, err
	}
	if rec.Refusal != nil {
		return nil, rec.Refusal.failure()
	}
	if rec.Embeddings == nil {
		return nil, tea.Errorf(tea.ValidationError, "the recording %s holds no embeddings", hash)
	}
	return rec.Embeddings, nil
}
