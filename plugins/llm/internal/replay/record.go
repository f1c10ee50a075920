package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/transport"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Record is one line of a recording. Requests are kept for people to read;
// only the hash is used to find an answer. Keys, headers and addresses are no
// part of a request and so never in a recording.
type Record struct {
	Hash         string             `json:"hash"`
	Request      *chat.Request      `json:"request,omitempty"`
	EmbedRequest *chat.EmbedRequest `json:"embed_request,omitempty"`
	Chunks       []chat.Delta       `json:"chunks,omitempty"`
	Answer       *chat.Answer       `json:"answer,omitempty"`
	Embeddings   *chat.Embeddings   `json:"embeddings,omitempty"`
	// Refusal stands in the place of an answer where the server found fault
	// with the request: callers go on from there, with another request.
	Refusal *Refusal `json:"refusal,omitempty"`
}

// Refusal is what a server had against a request.
type Refusal struct {
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

func (r *Refusal) failure() *tea.Error {
	return &tea.Error{Type: tea.ValidationError, Message: r.Message, Details: maps.Clone(r.Details)}
}

// refusalOf gives what to record of a failure; nil where it may pass.
func refusalOf(err error) *Refusal {
	if !transport.IsRefusal(err) {
		return nil
	}
	e := tea.AsError(err)
	return &Refusal{Message: e.Message, Details: e.Details}
}

// pieces gives the recorded stream; an answer that was not streamed when it
// was recorded comes in one piece.
func (r *Record) pieces() []chat.Delta {
	if len(r.Chunks) > 0 {
		return r.Chunks
	}
	if r.Answer.Text == "" && r.Answer.Reasoning == "" {
		return nil
	}
	return []chat.Delta{{Text: r.Answer.Text, Reasoning: r.Answer.Reasoning}}
}

// hashOf identifies what was asked, independent of the order of members and
// the form of numbers.
func hashOf(kind string, request any) (string, error) {
	v, err := value.From(request)
	if err == nil {
		var raw []byte
		if raw, err = value.Append([]byte(kind+" "), wholeNumbers(v)); err == nil {
			sum := sha256.Sum256(raw)
			return hex.EncodeToString(sum[:]), nil
		}
	}
	return "", tea.Errorf(tea.ValidationError, "identify the request: %w", err)
}

// wholeNumbers makes 3.0 the same as 3 in a tree that belongs to the caller.
func wholeNumbers(v any) any {
	switch v := v.(type) {
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	case []any:
		for i, e := range v {
			v[i] = wholeNumbers(e)
		}
	case map[string]any:
		for k, e := range v {
			v[k] = wholeNumbers(e)
		}
	}
	return v
}
