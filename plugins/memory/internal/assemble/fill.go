package assemble

import (
	"cmp"
	"context"
	"regexp"
	"sort"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
)

const (
	// between separates two parts of a context.
	between = "\n\n"
	// minBody is the least number of tokens of a text that is worth a heading.
	minBody = 16
	// bytesPerToken is how much of a large file is read for each token of room. A
	// token has about four bytes of prose.
	bytesPerToken = 16
	// maxMisses is the number of consecutive units that do not fit after which the rest is skipped.
	maxMisses = 50
)

// part is a section of the context: a heading and a text.
type part struct {
	heading, body string
	source        int // index in the result's sources; -1 for a table
}

func (p part) text() string { return p.heading + between + p.body }

// filling is a context under construction.
type filling struct {
	tokens   *tokens.Encoding
	g        *gathering
	r        Request
	result   *Result
	parts    []part // first of tables, finally all
	sections map[*candidate]*section
	used     int         // tokens
	taken    map[int]int // tokens by layer
}

// unit is a whole candidate, or a passage of one.
type unit struct {
	*candidate
	passage int // -1 for the whole candidate
	value   float64
}

// headingLike matches lines of a text that look like a heading of the context.
var headingLike = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(^|[\r\v\f\x{85}\x{2028}\x{2029}])([\pZ\p{Cf}\t]*)(##[\pZ\p{Cf}\t]*[^\s:]+:)`)
})

// disarm escapes such lines, so that a text cannot be mistaken for another source of the context.
func disarm(text string) string { return headingLike().ReplaceAllString(text, `$1$2\$3`) }

func (a *Assembler) fill(ctx context.Context, r Request, g *gathering, tables []Table) (*Result, error) {
	f := &filling{
		tokens: a.o.Tokens, g: g, r: r, result: &Result{Sources: []Source{}, Tables: tables, Method: g.method}, sections: map[*candidate]*section{}, taken: map[int]int{},
	}
	f.tables(len(g.ranked) > 0)
	if err := f.candidates(ctx); err != nil {
		return nil, err
	}
	f.finish()
	return f.result, nil
}

// candidates takes the units with the greatest values. A candidate that does not
// fit is replaced by its passages. The remaining room is filled with the
// beginnings of units that did not fit.
func (f *filling) candidates(ctx context.Context) error {
	asked := f.g.asked()
	queue, left, full := f.units(), []unit(nil), map[*candidate]bool{}
	for misses := 0; len(queue) > 0 && misses < maxMisses; {
		u := queue[0]
		queue = queue[1:]
		if full[u.candidate] {
			continue // a passage that does not fit is not replaced with a worse one
		}
		fits, err := f.take(ctx, u, !asked)
		switch {
		case err != nil:
			return err
		case fits:
			misses = 0
			continue
		}
		f.result.Truncated = true
		if asked && u.passage < 0 && f.remaining(u.candidate) >= minBody {
			parts, err := f.split(ctx, u.candidate)
			if err != nil {
				return err
			}
			if len(parts) > 0 {
				queue = append(parts, queue...)
				sortUnits(queue)
				continue
			}
		}
		misses++
		full[u.candidate] = true
		left = append(left, u)
	}
	if !asked {
		return nil
	}
	for _, u := range left {
		_, err := f.take(ctx, u, true)
		if err == nil && f.sections[u.candidate] == nil && u.passage >= 0 { // there is no room to say where the passage is
			u.passage = -1
			_, err = f.take(ctx, u, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// units returns the candidates by rank, candidates without similarity last.
func (f *filling) units() []unit {
	units := make([]unit, len(f.g.ranked))
	for i, c := range f.g.ranked {
		units[i] = unit{candidate: c, passage: -1, value: c.score}
		if c.similarity == 0 {
			units[i].value -= 1 + f.r.PriorityWeight
		}
	}
	sortUnits(units)
	return units
}

func sortUnits(units []unit) {
	sort.Slice(units, func(i, j int) bool { return units[i].compare(units[j]) < 0 })
}

// split returns the passages of a candidate that are worth reading. The value of
// a passage is the candidate's score, scaled by the passage's share of its
// similarity.
func (f *filling) split(ctx context.Context, c *candidate) (units []unit, err error) {
	s, err := f.g.passagesOf(ctx, c)
	if s == nil || err != nil {
		return nil, err
	}
	for i, p := range s.all {
		if p.similarity > 0 {
			value := rounded(f.r.SimilarityWeight*c.similarity*p.similarity + f.r.PriorityWeight*c.place.priority)
			units = append(units, unit{candidate: c, passage: i, value: value})
		}
	}
	return units, nil
}

func (u unit) compare(other unit) int {
	return cmp.Or(cmp.Compare(other.value, u.value), cmp.Compare(u.rank, other.rank), cmp.Compare(u.passage, other.passage))
}

// remaining returns how many tokens are left for a candidate.
func (f *filling) remaining(c *candidate) int {
	room := f.r.MaxTokens - f.used
	if limit := c.place.maxTokens; limit > 0 {
		room = min(room, limit-f.taken[c.place.layer])
	}
	return room
}

func (f *filling) spend(c *candidate, cost int) {
	f.used += cost
	f.taken[c.place.layer] += cost
}

// take adds a unit, or, with cut, the beginning of one that does not fit. It
// reports whether all of it fits.
func (f *filling) take(ctx context.Context, u unit, cut bool) (fits bool, err error) {
	if u.passage >= 0 {
		return f.passage(u, cut), nil
	}
	s := newSection(u.candidate, f.tokens)
	room := f.remaining(u.candidate) - s.cost
	whole := room > 0 && (u.file == nil || u.file.Tokens <= room)
	if room <= 0 || !whole && (!cut || room < minBody) {
		return false, nil
	}
	body, ok := f.body(ctx, u.candidate, room, whole)
	if !ok || ctx.Err() != nil {
		return true, ctx.Err()
	}
	disarmed := disarm(body)
	var count int
	if u.file != nil && whole && disarmed == body && f.tokens == nil {
		count = u.file.Tokens
	} else {
		body, count = f.tokens.Cut(disarmed, room)
		whole = whole && len(body) == len(disarmed)
	}
	if body == "" || !whole && (!cut || count < minBody/2) {
		return false, nil
	}
	f.result.Truncated = f.result.Truncated || !whole
	s.body, s.truncated = body, !whole
	s.cost += count
	f.sections[u.candidate] = s
	f.spend(u.candidate, s.cost)
	return whole, nil
}

// passage adds a passage, or its beginning.
func (f *filling) passage(u unit, cut bool) (fits bool) {
	s := f.sections[u.candidate]
	cost := 0
	if s == nil {
		s = newSection(u.candidate, f.tokens)
		cost = s.cost + f.tokens.Count(between+truncationMark)
	}
	p := u.passages.all[u.passage]
	cost += s.joint(u.passage)
	room := f.remaining(u.candidate) - cost
	if room <= 0 {
		return false
	}
	text := u.passages.text[p.start:p.end]
	count := f.tokens.Count(disarm(text))
	if count > room {
		if !cut || room < minBody {
			return false
		}
		text, _ = f.tokens.Cut(text, room)
		if count = f.tokens.Count(disarm(text)); text == "" || count > room {
			return false
		}
	}
	s.spans = append(s.spans, span{passage: u.passage, end: p.start + len(text)})
	f.sections[u.candidate] = s
	f.spend(u.candidate, cost+count)
	return p.start+len(text) == p.end
}

// body returns the text of a candidate, or enough of it to be cut; false if the
// candidate was removed meanwhile, is damaged or empty.
func (f *filling) body(ctx context.Context, c *candidate, room int, whole bool) (text string, ok bool) {
	text = c.text
	if c.file != nil {
		limit := c.file.Size
		if !whole {
			limit = min(limit, int64(room)*bytesPerToken+minBody*bytesPerToken)
		}
		var err error
		if text, err = readText(ctx, f.g.a.o.Files, *c.file, limit); err != nil {
			if ctx.Err() == nil {
				f.r.Warn("a file cannot be read and is left out of the context", c.path, err)
			}
			return "", false
		}
	}
	text = strings.TrimRight(text, " \t\r\n")
	return text, text != ""
}

func (f *filling) add(p part, cost int) {
	if len(f.parts) > 0 {
		f.used++
	}
	f.parts = append(f.parts, p)
	f.used += cost
}

// finish joins the parts by rank. The whole can have a few more tokens than the sum of its parts, which are removed
// from the end.
func (f *filling) finish() {
	for _, c := range f.g.ranked {
		if s := f.sections[c]; s != nil {
			f.result.Sources = append(f.result.Sources, s.source())
			f.parts = append(f.parts, part{heading: s.heading, body: s.render(), source: len(f.result.Sources) - 1})
		}
	}
	for {
		texts := make([]string, len(f.parts))
		for i, p := range f.parts {
			texts[i] = p.text()
		}
		f.result.Context = strings.Join(texts, between)
		f.result.Tokens = f.tokens.Count(f.result.Context)
		over := f.result.Tokens - f.r.MaxTokens
		if over <= 0 {
			return
		}
		f.result.Truncated = true
		f.shorten(over)
	}
}

func (f *filling) shorten(over int) {
	end := len(f.parts) - 1
	last := &f.parts[end]
	before := f.tokens.Count(last.body)
	body, count := f.tokens.Cut(last.body, before-over)
	if last.source < 0 || body == "" || len(body) >= len(last.body) || len(f.result.Sources[last.source].Passages) > 0 {
		f.parts = f.parts[:end]
		if last.source >= 0 {
			f.result.Sources = f.result.Sources[:last.source]
		}
		return
	}
	source := &f.result.Sources[last.source]
	source.Tokens, source.Truncated, last.body = source.Tokens-before+count, true, body
}

// oneLine returns a name without line breaks and other control characters.
func oneLine(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r == 0x85 {
			return ' '
		}
		return r
	}, name)
}
