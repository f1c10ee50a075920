package chat

import (
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Pieces assembles an answer from the pieces of a server, and emits text and reasoning
// in whole characters as they arrive. A <think> block at the beginning of the text is
// reasoning.
type Pieces struct {
	// Emit receives each piece; nil emits nothing.
	Emit func(Delta)
	// Max is the maximum size of an answer in bytes; 0 means no limit.
	Max int
	// Emitted is the number of pieces emitted so far.
	Emitted int
	// Size is the size of the answer so far, including tool calls and extra
	// members.
	Size int

	text, reasoning           strings.Builder
	textJoiner, thoughtJoiner stream.Joiner
	block                     thinkBlock
	extra                     Extra
}

// Add appends the next piece. Its texts are escaped by [stream.Escape].
func (p *Pieces) Add(text, reasoning string) {
	p.Size += len(text) + len(reasoning)
	said, thought := p.block.split(p.textJoiner.Add(text))
	p.emit(said, p.thoughtJoiner.Add(reasoning)+thought)
}

// AddExtra appends a piece of the members that the protocol does not define; see
// [Message].
func (p *Pieces) AddExtra(members map[string]any) { p.extra.Add(members) }

// Check returns a resource_exhausted error if the answer is too large.
func (p *Pieces) Check() error {
	if p.Max > 0 && p.Size > p.Max {
		return tea.Errorf(tea.ResourceExhausted, "the model's answer is larger than max_answer_bytes (%d bytes)", p.Max)
	}
	return nil
}

// End completes the answer with texts and extra members.
func (p *Pieces) End(a *Answer) {
	said, thought := p.block.split(p.textJoiner.Rest())
	rest, restThought := p.block.end()
	p.emit(said+rest, p.thoughtJoiner.Rest()+thought+restThought)
	a.Text, a.Reasoning, a.Extra = p.text.String(), p.reasoning.String(), p.extra.Members()
	if !p.block.seen {
		// A prompt template may have opened the block.
		if thought, said, ok := splitClosed(a.Text); ok {
			a.Text, a.Reasoning, p.block.seen = said, a.Reasoning+thought, true
		}
	}
	if p.block.seen {
		a.Reasoning = strings.TrimSpace(a.Reasoning)
	}
}

func (p *Pieces) emit(text, reasoning string) {
	if text == "" && reasoning == "" {
		return
	}
	p.text.WriteString(text)
	p.reasoning.WriteString(reasoning)
	if p.Emit != nil {
		p.Emitted++
		p.Emit(Delta{Text: text, Reasoning: reasoning})
	}
}

const (
	openThink, closeThink = "<think>", "</think>"
	space                 = " \t\r\n"
	// maxLeadingSpace is how much white space may precede a block.
	maxLeadingSpace = 64
)

// thinkBlock separates the <think> blocks at the beginning of a text from the rest,
// piece by piece. A tag may be split between pieces. A block without an end extends to
// the end of the text. The zero value is ready to use.
type thinkBlock struct {
	held string // the end of the input, which may be the beginning of a tag
	// inside is set within a block, past after the last place where one can begin.
	inside, past bool
	seen         bool // there was a block
}

func (b *thinkBlock) split(piece string) (text, thought string) {
	if b.past {
		return piece, ""
	}
	rest := b.held + piece
	b.held = ""
	for {
		if b.inside {
			before, after, closed := strings.Cut(rest, closeThink)
			if !closed {
				keep := overlap(rest, closeThink)
				b.held = rest[len(rest)-keep:]
				return "", thought + rest[:len(rest)-keep]
			}
			thought += before
			rest, b.inside = after, false
			continue
		}
		trimmed := strings.TrimLeft(rest, space)
		if after, opened := strings.CutPrefix(trimmed, openThink); opened {
			rest, b.inside, b.seen = after, true, true
			continue
		}
		if strings.HasPrefix(openThink, trimmed) && len(rest)-len(trimmed) <= maxLeadingSpace {
			b.held = rest
			return "", thought
		}
		b.past = true
		if b.seen {
			rest = trimmed
		}
		return rest, thought
	}
}

// end returns the text that was held back.
func (b *thinkBlock) end() (text, thought string) {
	held := b.held
	b.held = ""
	switch {
	case b.inside:
		return "", held
	case b.seen:
		return strings.TrimLeft(held, space), ""
	}
	return held, ""
}

// overlap is the length of the longest suffix of text that is a prefix of tag.
func overlap(text, tag string) int {
	for n := min(len(text), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return n
		}
	}
	return 0
}

// splitClosed splits a text at a closing tag without an opening tag that is alone on
// its line.
func splitClosed(text string) (thought, said string, ok bool) {
	thought, said, ok = strings.Cut(text, closeThink)
	if !ok || strings.Contains(thought, openThink) {
		return "", "", false
	}
	before, after := strings.TrimRight(thought, " \t\r"), strings.TrimLeft(said, " \t\r")
	if before != "" && !strings.HasSuffix(before, "\n") || after != "" && !strings.HasPrefix(after, "\n") {
		return "", "", false
	}
	return thought, strings.TrimLeft(said, space), true
}
