package openai

import (
	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
)

// assembly assembles an answer from its chunks and emits its text as it arrives.
type assembly struct {
	pieces chat.Pieces
	// seen is set after the first choice, grown after the first piece of an
	// answer, refused if the model declined. finish is the reason for the end.
	seen, grown, refused bool
	finish               string

	model string
	usage *chat.Usage
	calls calls
}

func newAssembly(maxAnswer int, emit func(chat.Delta)) *assembly {
	return &assembly{pieces: chat.Pieces{Emit: emit, Max: maxAnswer}}
}

// add consumes a chunk and reports whether it contains a piece of the answer.
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
		// Besides deltas, a message repeats the whole answer so far.
		if choice.Message != nil && (choice.Delta == nil || !a.grown && !grew) && a.addMessage(choice.Message) {
			grew = true
		}
	}
	a.grown = a.grown || grew
	return grew
}

// addMessage consumes a message. Its calls are complete.
func (a *assembly) addMessage(p *piece) (grew bool) {
	for _, part := range p.ToolCalls {
		a.calls.begin(part)
		a.pieces.Size += part.size()
		grew = true
	}
	rest := *p
	rest.ToolCalls = nil
	return a.addPiece(&rest) || grew
}

func (a *assembly) addPiece(p *piece) (grew bool) {
	for _, part := range p.ToolCalls {
		a.calls.add(part)
		a.pieces.Size += part.size()
		grew = true
	}
	if p.FunctionCall != nil {
		part := callPart{Function: *p.FunctionCall}
		a.calls.add(part)
		a.pieces.Size += part.size()
		grew = true
	}
	content, reasoning := string(p.Content.answer+p.Refusal), p.reasoning()
	a.pieces.AddExtra(p.extra)
	a.pieces.Size += max(0, p.extraSize-len(reasoning)) // Add counts the reasoning
	a.pieces.Add(content, reasoning)
	a.refused = a.refused || p.Refusal != ""
	return grew || content != "" || reasoning != "" || len(p.extra) > 0
}

// answer completes the assembly.
func (a *assembly) answer() *chat.Answer {
	answer := &chat.Answer{Model: a.model, ToolCalls: a.calls.list(), Usage: a.usage}
	a.pieces.End(answer)
	if a.refused {
		a.finish = chat.FinishRefusal
	}
	answer.Finish(a.finish)
	return answer
}
