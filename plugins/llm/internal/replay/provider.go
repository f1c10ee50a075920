package replay

import (
	"context"
	"slices"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Mask returns a value of the value model without the run's secrets. It must not
// modify the given value, which may be shared.
type Mask func(ctx context.Context, v any) (any, error)

// Provider replays the recordings of a file, or adds to it.
type Provider struct {
	file *File
	mask Mask
	real chat.Provider
}

var _ chat.Provider = (*Provider)(nil)

// New returns a provider. If real is not nil, it answers every request and its answers
// are recorded; otherwise answers only come from the file.
func New(file *File, mask Mask, real chat.Provider) *Provider {
	return &Provider{file: file, mask: mask, real: real}
}

// Chat implements [chat.Provider].
func (p *Provider) Chat(ctx context.Context, req *chat.Request, emit func(chat.Delta)) (*chat.Answer, error) {
	if p.real != nil {
		return p.recordChat(ctx, req, emit)
	}
	rec, err := p.find(ctx, "chat", req)
	if err != nil {
		return nil, err
	}
	if rec.Answer == nil {
		return nil, tea.Errorf(tea.ValidationError, "the recording %s contains no answer", rec.Hash)
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

func (p *Provider) recordChat(ctx context.Context, req *chat.Request, emit func(chat.Delta)) (*chat.Answer, error) {
	rec := &Record{Request: req}
	tee := emit
	if emit != nil {
		tee = func(d chat.Delta) {
			rec.Chunks = append(rec.Chunks, d)
			emit(d)
		}
	}
	answer, err := p.real.Chat(ctx, req, tee)
	if err != nil {
		return nil, p.recordRefusal(ctx, "chat", &Record{Request: req}, err)
	}
	rec.Answer = clone(answer)
	return answer, p.add(ctx, "chat", rec)
}

// recordRefusal records a failure that counts as an answer, and returns it.
func (p *Provider) recordRefusal(ctx context.Context, kind string, rec *Record, err error) error {
	if rec.Refusal = refusalOf(err); rec.Refusal == nil {
		return err
	}
	if addErr := p.add(ctx, kind, rec); addErr != nil {
		return addErr
	}
	return err
}

// clone copies the parts of an answer that the caller of a provider may change.
func clone(answer *chat.Answer) *chat.Answer {
	own := *answer
	own.ToolCalls = slices.Clone(answer.ToolCalls)
	return &own
}

// Embed implements [chat.Provider].
func (p *Provider) Embed(ctx context.Context, req *chat.EmbedRequest) (*chat.Embeddings, error) {
	if p.real != nil {
		result, err := p.real.Embed(ctx, req)
		if err != nil {
			return nil, p.recordRefusal(ctx, "embed", &Record{Request: req}, err)
		}
		return result, p.add(ctx, "embed", &Record{Request: req, Embeddings: result})
	}
	rec, err := p.find(ctx, "embed", req)
	if err != nil {
		return nil, err
	}
	if rec.Embeddings == nil {
		return nil, tea.Errorf(tea.ValidationError, "the recording %s contains no embeddings", rec.Hash)
	}
	return rec.Embeddings, nil
}

// add masks a record and appends it to the file.
func (p *Provider) add(ctx context.Context, kind string, rec *Record) error {
	if err := rec.withoutSecrets(func(v any) (any, error) { return p.mask(ctx, v) }); err != nil {
		return tea.AsError(err)
	}
	var err error
	if rec.Hash, err = hashOf(kind, rec.Request); err != nil {
		return err
	}
	if kind == "embed" {
		rec.Request, rec.EmbedRequest = nil, rec.Request
	}
	return p.file.add(rec)
}

// find returns the recording of a request; a recorded refusal is returned as an error.
// It looks up the unchanged request first, and then the masked one, which needs a call
// to the host.
func (p *Provider) find(ctx context.Context, kind string, request any) (*Record, error) {
	v, err := value.From(request)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "identify the request: %w", err)
	}
	hash, err := hashOf(kind, request)
	if err != nil {
		return nil, err
	}
	rec, err := p.file.find(hash)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		if masked, err := p.mask(ctx, v); err == nil {
			v = masked
		}
		if hash, err = hashOf(kind, v); err != nil {
			return nil, err
		}
		if rec, err = p.file.find(hash); err != nil {
			return nil, err
		}
	}
	switch {
	case rec == nil:
		return nil, p.file.missing(hash)
	case rec.Refusal != nil:
		return nil, rec.Refusal.failure()
	}
	return rec, nil
}
