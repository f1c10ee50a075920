package chat

import (
	"context"
	"encoding/json"
	"fmt"
)

// Provider implements a server's protocol. Its methods are safe for concurrent use,
// return soon after ctx is done, and fail with a *tea.Error.
type Provider interface {
	// Chat asks for one answer. If emit is not nil, the answer is streamed: emit
	// receives each piece as it arrives, on the caller's goroutine. The concatenated
	// pieces are the text and the reasoning of the returned answer.
	Chat(ctx context.Context, req *Request, emit func(Delta)) (*Answer, error)
	// Embed returns one vector per input, in the order of the inputs.
	Embed(ctx context.Context, req *EmbedRequest) (*Embeddings, error)
}

// Delta is a piece of a streamed answer.
type Delta struct {
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
}

// EmbedRequest asks for the vectors of some texts.
type EmbedRequest struct {
	Model      string         `json:"model"`
	Input      []string       `json:"input"`
	Dimensions int            `json:"dimensions,omitempty"`
	Extra      map[string]any `json:"extra,omitempty"`
}

// Vector is an embedding in a server's JSON. A null element, which some servers send
// in place of NaN, is an error.
type Vector []float64

// UnmarshalJSON reads a list of numbers.
func (v *Vector) UnmarshalJSON(data []byte) error {
	var numbers []*float64
	if err := json.Unmarshal(data, &numbers); err != nil {
		return err
	}
	*v = make(Vector, len(numbers))
	for i, n := range numbers {
		if n == nil {
			return fmt.Errorf("element %d of a vector is null", i)
		}
		(*v)[i] = *n
	}
	return nil
}

// Embeddings are the answer to an [EmbedRequest].
type Embeddings struct {
	Model   string      `json:"model,omitempty"`
	Vectors [][]float64 `json:"vectors"`
	Usage   *Usage      `json:"usage,omitempty"`
}
