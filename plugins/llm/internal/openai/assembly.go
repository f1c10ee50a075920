package openai

import (
	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
)

// assembly puts an answer together from its chunks and gives out its text on
// the way.
type assembly struct {
	pieces chat.Pieces
	// seen says that a choice came at all, grown that it held something,
	// finish why the answer ended once it has.
	seen, grown bool
	finish      string

	model string
	usage *chat.Usage
	calls calls
}

func newAssembly(emit func(chat.Delta)) *assembly {
	return &assembly{pieces: chat.Pieces{Emit: emit}}
}

// add takes a chunk in and tells whether it held a piece of the answer.
func (a *assembly) add(c *completion) (grew bool) {
	if c.Model != "" {
		a.model = c.Model
	}
	if usage := toUsage(c.Usage); usage != nil {
		a.usage = usage
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		a.seen = true
		if choice.FinishReason != "" {
			a.finish = string(choice.FinishReason)
		}
		if choice.Delta != nil && a.addPiece(choice.Delta) {
			grew = true
		}
		// Beside deltas a message is all that was said so far, once more.
		if choice.Message != nil && (choice.Delta == nil || !a.grown && !grew) && a.addMessage(choice.Message) {
			grew = true
		}
	}
	a.grown = a.grown || grew
	return grew
}

// addMessage takes in a message, whose calls are whole.
func (a *assembly) addMessage(p *piece) (grew bool) {
	for _, part := range p.ToolCalls {
		a.calls.begin(part)
		grew = true
	}
	rest := *p
	rest.ToolCalls = nil
	return a.addPiece(&rest) || grew
}

func (a *assembly) addPiece(p *piece) (grew bool) {
	for _, part := range p.ToolCalls {
		a.calls.add(part)
		grew = true
	}
	if p.FunctionCall != nil {
		a.calls.add(callPart{Function: *p.FunctionCall})
		grew = true
	}
	content, reasoning := string(p.Content.said+p.Refusal), p.reasoning()
	a.pieces.Add(content, reasoning)
	return grew || content != "" || reasoning != ""
}

// answer ends the assembly.
func (a *assembly) answer() *chat.Answer {
	text, reasoning := a.pieces.End()
	answer := &chat.Answer{
		Model: a.model, Text: text, Reasoning: reasoning,
		ToolCalls: a.calls.list(), Usage: a.usage,
	}
	answer.Finish(a.finish)
	return answer
}
