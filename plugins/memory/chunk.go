package memory

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/chunk"
)

func chunkActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("text.chunk", "Splits a text into chunks for embeddings or for the context of a model.", (*Memory).TextChunk, tea.Idempotent(), tea.Reads()),
	}
}

// TextChunkParams are the parameters of text.chunk.
type TextChunkParams struct {
	Text    string `json:"text" doc:"text to split"`
	By      string `json:"by,omitempty" enum:"tokens,sentences,headings" default:"sentences" doc:"where to split: between words, between sentences, or at Markdown headings and between the sentences of long sections"`
	Size    int    `json:"size,omitempty" default:"256" minimum:"8" maximum:"100000" doc:"largest number of tokens in a chunk, as counted by cl100k_base or settings.memory.vocabulary; only a single character can have more"`
	Overlap int    `json:"overlap,omitempty" minimum:"0" doc:"largest number of tokens that a chunk repeats from the end of the previous one, in whole words or sentences; less than size; default 0"`
}

// TextChunk is a chunk in the result of text.chunk.
type TextChunk struct {
	Index    int      `json:"index" doc:"from 0"`
	Text     string   `json:"text"`
	Start    int      `json:"start" doc:"first byte of the chunk in the text"`
	End      int      `json:"end" doc:"byte after the end of the chunk"`
	Tokens   int      `json:"tokens"`
	Headings []string `json:"headings" doc:"headings above the chunk, the outermost first; empty unless by is headings"`
}

// TextChunkResult is the result of text.chunk.
type TextChunkResult struct {
	Success bool        `json:"success"`
	Chunks  []TextChunk `json:"chunks"`
	Count   int         `json:"count"`
}

// TextChunk is the action text.chunk.
func (m *Memory) TextChunk(_ context.Context, _ *tea.Request, p TextChunkParams) (*TextChunkResult, error) {
	if p.Overlap >= p.Size {
		return nil, tea.Errorf(tea.ValidationError, "text.chunk: overlap (%d) must be less than size (%d)", p.Overlap, p.Size)
	}
	r := &TextChunkResult{Success: true, Chunks: []TextChunk{}}
	for i, c := range chunk.Split(p.Text, chunk.Options{By: chunk.By(p.By), Size: p.Size, Overlap: p.Overlap, Count: m.folder.tokens.Count}) {
		r.Chunks = append(r.Chunks, TextChunk{Index: i, Text: c.Text, Start: c.Start, End: c.End, Tokens: c.Tokens, Headings: append([]string{}, c.Headings...)})
	}
	r.Count = len(r.Chunks)
	return r, nil
}
