package replay

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// Record is one line of a recording. The request is for people to read; only its hash
// is used to find an answer. Keys, headers and addresses are not part of a request, so
// a recording never contains them.
type Record struct {
	Hash         string           `json:"hash"`
	Request      any              `json:"request,omitempty"`
	EmbedRequest any              `json:"embed_request,omitempty"`
	Chunks       []chat.Delta     `json:"chunks,omitempty"`
	Answer       *chat.Answer     `json:"answer,omitempty"`
	Embeddings   *chat.Embeddings `json:"embeddings,omitempty"`
	// Refusal replaces the answer if the server rejected the request: the caller
	// may continue with another request.
	Refusal *Refusal `json:"refusal,omitempty"`
}

// Refusal is the reason why a server rejected a request.
type Refusal struct {
	// Type is the type of the error; "" is validation_error.
	Type    tea.ErrorType  `json:"type,omitempty"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

func (r *Refusal) failure() *tea.Error {
	return &tea.Error{Type: cmp.Or(r.Type, tea.ValidationError), Message: r.Message, Details: maps.Clone(r.Details)}
}

// refusalOf returns the record of a permanent failure; nil for a temporary one.
func refusalOf(err error) *Refusal {
	e := tea.AsError(err)
	switch {
	case httpapi.IsRejection(err):
		return &Refusal{Message: e.Message, Details: e.Details}
	case e.Type == httpapi.ContentFiltered:
		return &Refusal{Type: e.Type, Message: e.Message, Details: e.Details}
	}
	return nil
}

// pieces returns the recorded stream. An answer that was not streamed is one piece.
func (r *Record) pieces() []chat.Delta {
	if len(r.Chunks) > 0 {
		return r.Chunks
	}
	if r.Answer.Text == "" && r.Answer.Reasoning == "" {
		return nil
	}
	return []chat.Delta{{Text: r.Answer.Text, Reasoning: r.Answer.Reasoning}}
}

// secretive holds the parts of a record that may contain secrets.
type secretive struct {
	Request any         `json:"request,omitempty"`
	Answer  chat.Answer `json:"answer"`
	Refusal *Refusal    `json:"refusal,omitempty"`
}

// withoutSecrets masks the record. If masking changes the answer, it drops the pieces
// of the stream, which may contain parts of a secret.
func (r *Record) withoutSecrets(mask func(any) (any, error)) error {
	parts := secretive{Request: r.Request, Refusal: r.Refusal}
	if r.Answer != nil {
		parts.Answer = *r.Answer
		parts.Answer.Usage = nil // token counts are never secrets
	}
	v, err := value.From(parts)
	if err != nil {
		return err
	}
	if v, err = mask(v); err != nil {
		return err
	}
	raw, err := value.Encode(v)
	if err != nil {
		return err
	}
	var masked secretive
	if err := json.Unmarshal(raw, &masked); err != nil {
		return err
	}
	r.Request, r.Refusal = v.(map[string]any)["request"], masked.Refusal
	if r.Answer == nil {
		return nil
	}
	if masked.Answer.Text != r.Answer.Text || masked.Answer.Reasoning != r.Answer.Reasoning {
		r.Chunks = nil
	}
	masked.Answer.Usage = r.Answer.Usage
	r.Answer = &masked.Answer
	return nil
}

// hashOf identifies a request, independent of the order of members and the
// form of numbers.
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

// wholeNumbers replaces 3.0 with 3, in place.
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
