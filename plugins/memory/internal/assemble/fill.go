package assemble

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
)

const (
	// between lies between two parts of a context.
	between = "\n\n"
	// leastBody is what of a text must fit, in tokens, for a part of it to be
	// worth its heading.
	leastBody = 16
	// bytesPerToken is how much of a large file is read for each token that
	// there is room for. A token has four bytes of prose.
	bytesPerToken = 16
	// maxMisses is how many candidates in a row may be too large for what is
	// left before the rest is not looked at any more.
	maxMisses = 50
)

// part is a section of the context: a heading and a text.
type part struct {
	heading, body string
	source        int // in the result; -1 for a table
}

func (p part) text() string { return p.heading + between + p.body }

// filling is a context that grows.
type filling struct {
	a      *Assembler
	r      Request
	result *Result
	parts  []part
	used   int
	taken  map[int]int // tokens by layer
}

// posing finds lines of a text that look like a heading of the context.
var posing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(^|[\r\v\f\x{85}\x{2028}\x{2029}])([ \t]*)(##[ \t]*[^\s:]+:)`)
})

// fill writes the context: the tables, and then the candidates as long as
// there is room.
func (a *Assembler) fill(ctx context.Context, r Request, g *gathering, tables []Table) (*Result, error) {
	f := &filling{a: a, r: r, result: &Result{Sources: []Source{}, Tables: tables, Method: g.method}, taken: map[int]int{}}
	f.tables(len(g.ranked) > 0)
	misses := 0
	for _, c := range g.ranked {
		if misses == maxMisses {
			break
		}
		fits, err := f.candidate(ctx, c)
		if err != nil {
			return nil, err
		}
		if misses++; fits {
			misses = 0
		}
	}
	f.finish()
	return f.result, nil
}

// candidate adds one, or the beginning of it. It says whether there was room.
func (f *filling) candidate(ctx context.Context, c *candidate) (fits bool, err error) {
	heading := "## " + c.place.scope + ": " + oneLine(c.path)
	cost := tokens.Count(heading + between)
	room := f.r.MaxTokens - f.used - cost
	if len(f.parts) > 0 {
		room-- // for what is between
	}
	if limit := c.place.maxTokens; limit > 0 {
		room = min(room, limit-f.taken[c.place.layer]-cost)
	}
	whole := room > 0 && (c.file == nil || c.file.Tokens <= room)
	if room <= 0 || !whole && room < leastBody {
		f.result.Truncated = true
		return false, nil
	}
	body, ok := f.body(ctx, c, room, whole)
	if !ok || ctx.Err() != nil {
		return true, ctx.Err()
	}
	// A text must not pose as another source of the context.
	disarmed := posing().ReplaceAllString(body, `$1$2\$3`)
	var count int
	if c.file != nil && whole && disarmed == body {
		count = c.file.Tokens
	} else {
		var head string
		head, count = tokens.Cut(disarmed, room)
		whole = whole && len(head) == len(disarmed)
		body = head
	}
	if body == "" || !whole && count < leastBody/2 {
		f.result.Truncated = true
		return false, nil
	}
	f.result.Truncated = f.result.Truncated || !whole
	f.result.Sources = append(f.result.Sources, Source{
		Kind: c.kind, Path: c.path, Scope: c.place.scope, Tokens: cost + count, Score: c.score, Similarity: c.similarity, Truncated: !whole,
	})
	f.add(part{heading: heading, body: body, source: len(f.result.Sources) - 1}, cost+count)
	f.taken[c.place.layer] += cost + count
	return whole, nil
}

func (f *filling) add(p part, cost int) {
	if len(f.parts) > 0 {
		f.used++
	}
	f.parts = append(f.parts, p)
	f.used += cost
}

// body is the text of a candidate, or enough of it to be cut. One that has
// gone meanwhile, is damaged or says nothing is passed over.
func (f *filling) body(ctx context.Context, c *candidate, room int, whole bool) (text string, ok bool) {
	text = c.text
	if c.file != nil {
		limit := c.file.Size
		if !whole {
			limit = min(limit, int64(room)*bytesPerToken+leastBody*bytesPerToken)
		}
		var err error
		if text, err = readText(ctx, f.a.o.Files, *c.file, limit); err != nil {
			if ctx.Err() == nil {
				f.r.Warn("a file cannot be read and is left out of the context", c.path, err)
			}
			return "", false
		}
	}
	text = strings.TrimRight(text, " \t\r\n")
	return text, text != ""
}

// finish puts the parts together. The tokens of a whole may differ by a few
// from the sum of its parts; what is then too much is taken from the end.
func (f *filling) finish() {
	for {
		texts := make([]string, len(f.parts))
		for i, p := range f.parts {
			texts[i] = p.text()
		}
		f.result.Context = strings.Join(texts, between)
		f.result.Tokens = tokens.Count(f.result.Context)
		over := f.result.Tokens - f.r.MaxTokens
		if over <= 0 {
			return
		}
		f.result.Truncated = true
		f.shorten(over)
	}
}

// shorten takes tokens from the last part, or all of it.
func (f *filling) shorten(over int) {
	end := len(f.parts) - 1
	last := &f.parts[end]
	before := tokens.Count(last.body)
	body, count := tokens.Cut(last.body, before-over)
	if last.source < 0 || body == "" || len(body) >= len(last.body) {
		f.parts = f.parts[:end]
		if last.source >= 0 {
			f.result.Sources = f.result.Sources[:last.source]
		}
		return
	}
	source := &f.result.Sources[last.source]
	source.Tokens, source.Truncated, last.body = source.Tokens-before+count, true, body
}

// oneLine is a name that cannot pretend to be more than a heading.
func oneLine(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r == 0x85 {
			return ' '
		}
		return r
	}, name)
}
