package assemble

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
)

const (
	// truncationMark ends a section whose text continues.
	truncationMark = "[...]"
	// maxTrail is the length in bytes of the headings that lead to a passage.
	maxTrail = 120
)

// section is the part of one candidate in the context: its text, the beginning
// of it, or passages.
type section struct {
	c         *candidate
	tokens    *tokens.Encoding
	heading   string
	cost      int // tokens of the heading, and of body
	body      string
	truncated bool
	spans     []span
}

// span is a passage in a section. If it was cut, end is before the end of the passage.
type span struct{ passage, end int }

// run is a sequence of adjacent passages of a section.
type run struct {
	Passage
	start, end int
}

func newSection(c *candidate, counter *tokens.Encoding) *section {
	heading := "## " + c.place.scope + ": " + oneLine(c.path)
	return &section{c: c, tokens: counter, heading: heading, cost: counter.Count(heading+between) + 1}
}

// joint returns the number of tokens that join a passage to the previous one or describe its place.
func (s *section) joint(passage int) int {
	near := func(other span) bool { return other.passage == passage-1 || other.passage == passage+1 }
	if slices.ContainsFunc(s.spans, near) {
		return 2
	}
	p := s.c.passages.all[passage]
	at := run{Passage: Passage{FirstLine: p.line, LastLine: p.line + maxPassage, Headings: p.headings}}
	return s.tokens.Count(at.place(true)) + 2
}

// runs joins adjacent passages of the section.
func (s *section) runs() (runs []run) {
	sort.Slice(s.spans, func(i, j int) bool { return s.spans[i].passage < s.spans[j].passage })
	all, text := s.c.passages.all, s.c.passages.text
	for i, at := range s.spans {
		p := all[at.passage]
		if i == 0 || s.spans[i-1] != (span{at.passage - 1, all[max(at.passage-1, 0)].end}) {
			runs = append(runs, run{start: p.start, Passage: Passage{FirstLine: p.line, Headings: p.headings}})
		}
		last := &runs[len(runs)-1]
		last.end, last.LastLine = at.end, p.line+strings.Count(text[p.start:at.end], "\n")
	}
	return runs
}

// render returns the text below the heading.
func (s *section) render() string {
	if len(s.spans) == 0 {
		return s.body
	}
	text := s.c.passages.text
	gap := func(from, to int) bool { return strings.TrimSpace(text[from:to]) != "" }
	runs := s.runs()
	if len(runs) == 1 && !gap(0, runs[0].start) { // the beginning of a text needs no position
		return disarm(text[runs[0].start:runs[0].end])
	}
	var parts []string
	end := 0
	for _, r := range runs {
		parts = append(parts, r.place(gap(end, r.start))+"\n"+disarm(text[r.start:r.end]))
		end = r.end
	}
	if gap(end, len(text)) {
		parts = append(parts, truncationMark)
	}
	return strings.Join(parts, between)
}

// place describes where a run is in its source: its lines and the headings that
// lead to it. Dots mark a gap before it.
func (r run) place(gap bool) string {
	var b strings.Builder
	b.WriteByte('[')
	if gap {
		b.WriteString("... ")
	}
	if r.FirstLine == r.LastLine {
		fmt.Fprintf(&b, "line %d", r.FirstLine)
	} else {
		fmt.Fprintf(&b, "lines %d-%d", r.FirstLine, r.LastLine)
	}
	if len(r.Headings) > 0 {
		trail := oneLine(strings.Join(r.Headings, " > "))
		if len(trail) > maxTrail {
			trail = strings.ToValidUTF8(trail[:maxTrail], "") + "..."
		}
		b.WriteString(": " + trail)
	}
	b.WriteByte(']')
	return b.String()
}

func (s *section) source() Source {
	source := Source{
		Kind: s.c.kind, Path: s.c.path, Scope: s.c.place.scope, Tokens: s.cost - 1, Score: s.c.score, Similarity: s.c.similarity, Truncated: s.truncated,
	}
	if len(s.spans) > 0 {
		source.Tokens, source.Truncated = s.tokens.Count(s.heading+between+s.render()), true
		for _, r := range s.runs() {
			source.Passages = append(source.Passages, r.Passage)
		}
	}
	return source
}
