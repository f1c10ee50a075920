package chat

import (
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
)

// Pieces collects a streamed answer's text and gives it out on the way, in
// whole characters.
type Pieces struct {
	// Emit gets each piece; nil gives nothing out.
	Emit func(Delta)
	// Count is the number of pieces given out.
	Count int

	text, reasoning       strings.Builder
	textEnd, reasoningEnd stream.Joiner
}

// Add takes the next piece in; its texts went through [stream.Escape].
func (p *Pieces) Add(text, reasoning string) {
	p.give(p.textEnd.Add(text), p.reasoningEnd.Add(reasoning))
}

// End gives the whole texts.
func (p *Pieces) End() (text, reasoning string) {
	p.give(p.textEnd.Rest(), p.reasoningEnd.Rest())
	return p.text.String(), p.reasoning.String()
}

func (p *Pieces) give(text, reasoning string) {
	if text == "" && reasoning == "" {
		return
	}
	p.text.WriteString(text)
	p.reasoning.WriteString(reasoning)
	if p.Emit != nil {
		p.Count++
		p.Emit(Delta{Text: text, Reasoning: reasoning})
	}
}
