package assemble

import (
	"context"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/chunk"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
)

const (
	// maxPassage and minPassage bound the size of a passage in bytes. Between
	// them, a passage takes about a quarter of the context.
	maxPassage = 400
	minPassage = 120
	// longText is the size in bytes from which a text is compared with the
	// question passage by passage.
	longText = 4096
	// maxLong and maxLongBytes bound the long texts of a request.
	maxLong      = 50
	maxLongBytes = 8 << 20
	// reach is the number of passages on either side of a match that count.
	reach = 2
)

// passages are the parts of a long text, in order.
type passages struct {
	text string
	all  []passage
	// best is the BM25 score of the best passage among all documents.
	best float64
}

// passage is the part of a text from start to end.
type passage struct {
	start, end int
	line       int // the first line, from 1
	headings   []string
	// similarity is 1 for the best passage of the text, and 0 for a passage that has
	// no word of the question and is not near one that has.
	similarity float64
}

// split splits a text into passages and compares them with the question. Within a
// text, a word in fewer passages has a greater weight.
func (g *gathering) split(text string) *passages {
	size := max(min(g.r.MaxTokens, maxPassage), minPassage)
	s := &passages{text: text}
	var counts []fulltext.Counts
	line, counted := 1, 0
	for _, section := range chunk.Sections(text) {
		for start := section.Start; start < section.End; {
			rest := text[start:section.End]
			end := section.End
			if len(rest) > size {
				end = start + tokens.Break(rest, size)
			}
			part := strings.TrimSpace(text[start:end])
			if start += strings.Index(text[start:end], part); part != "" {
				line, counted = line+strings.Count(text[counted:start], "\n"), start
				s.all = append(s.all, passage{start: start, end: start + len(part), line: line, headings: section.Headings})
				n := g.count(append(section.Headings[:len(section.Headings):len(section.Headings)], part)...)
				counts, s.best = append(counts, n), max(s.best, g.statistics.Score(n))
			}
			start = end
		}
	}
	among := g.statistics.Among(counts)
	scores := make([]float64, len(counts))
	most := 0.0
	for i, n := range counts {
		scores[i] = among.Score(n)
		most = max(most, scores[i])
	}
	if most == 0 {
		return s
	}
	for i, score := range scores {
		// Lines next to a match often have the answer.
		for near, share := 0, 1.0; near <= reach; near, share = near+1, share/2 {
			for _, j := range []int{i - near, i + near} {
				if j >= 0 && j < len(s.all) {
					s.all[j].similarity = max(s.all[j].similarity, rounded(share*score/most))
				}
			}
		}
	}
	return s
}

// passagesOf returns the passages of a candidate; nil without a question, or if
// the request has compared enough long texts.
func (g *gathering) passagesOf(ctx context.Context, c *candidate) (*passages, error) {
	if c.passages != nil || !g.asked() {
		return c.passages, nil
	}
	text, size := c.text, int64(len(c.text))
	if c.file != nil {
		size = min(c.file.Size, maxIndexed)
	}
	if size >= longText {
		if g.long == maxLong || g.longBytes+size > maxLongBytes {
			return nil, nil
		}
		g.long++
		g.longBytes += size
	}
	if c.file != nil {
		var err error
		if text, err = readText(ctx, g.a.o.Files, *c.file, maxIndexed); err != nil {
			return nil, ctx.Err() // filling warns about a file that cannot be read
		}
	}
	c.passages = g.split(text)
	return c.passages, nil
}

// compareLong compares long texts by their best passage. BM25 of a whole text would penalize everything in it that is
// about other topics.
func (g *gathering) compareLong(ctx context.Context) error {
	var long []*candidate
	for _, c := range g.found {
		if !c.hasVector && c.words > 0 && (c.file != nil && c.file.Size >= longText || len(c.text) >= longText) {
			long = append(long, c)
		}
	}
	slices.SortFunc(long, byWords)
	for _, c := range long {
		s, err := g.passagesOf(ctx, c)
		if err != nil {
			return err
		}
		if s != nil {
			c.words = max(c.words, s.best)
		}
	}
	return nil
}
