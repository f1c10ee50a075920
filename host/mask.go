package host

import "github.com/the-edge-agent/tea/host/internal/secret"

// Mask takes the values of secrets out of what is shown to somebody.
type Mask struct{ set *secret.Set }

// NewMask makes a mask for the secrets of a run; see [RunOptions].
func NewMask(secrets map[string]any) Mask { return Mask{secret.New(secrets, nil)} }

// Value gives v, which must be in the value model, with *** in the secrets'
// place; v itself is not changed.
func (m Mask) Value(v any) any { return m.set.Redact(v) }

// Text is Value for a text.
func (m Mask) Text(text string) string { return m.set.Text(text) }
