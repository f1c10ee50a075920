package tokens

import (
	"maps"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/host/flow"
)

// Tokens of one stream are stored together, since an event for each would take a
// hundred bytes for three bytes of text. The group has the seq of its last token, so that the log
// stays in order; groups that are stored together can overlap.
const (
	maxGroupBytes = 32 << 10
	// MaxGroup is the maximum number of tokens that are stored together.
	MaxGroup    = 1000
	maxGroupAge = 500 * time.Millisecond
)

// The fields of an event in the log that combines several tokens.
const (
	fieldFirstSeq = "first_seq" // the seq of the first token
	fieldLengths  = "lengths"   // of the tokens, in bytes
	fieldSteps    = "seq_steps" // from each token's seq to the next; omitted if all are 1
)

// Buffer collects tokens by the execution that streams them. The zero value is
// empty. It is not safe for concurrent use.
type Buffer struct {
	byPath map[string]*group
	tokens int
	bytes  int
	since  time.Time
}

// group is a sequence of tokens of one execution.
type group struct {
	event   flow.Event // of the first token
	text    strings.Builder
	seqs    []int64
	lengths []any
}

// Add adds a token; it returns false for any other event.
func (b *Buffer) Add(e flow.Event) bool {
	if e.Type != flow.EventToken {
		return false
	}
	text, ok := e.Field("text").(string)
	if !ok || len(e.Fields) != 1 {
		return false
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if b.tokens == 0 {
		b.byPath, b.since = map[string]*group{}, e.Time
	}
	g := b.byPath[e.Path]
	if g == nil {
		g = &group{event: e}
		b.byPath[e.Path] = g
	}
	g.text.WriteString(text)
	g.seqs, g.lengths = append(g.seqs, e.Seq), append(g.lengths, int64(len(text)))
	b.tokens++
	b.bytes += len(text)
	return true
}

// Full reports whether the tokens have to be stored.
func (b *Buffer) Full(now time.Time) bool {
	return b.bytes >= maxGroupBytes || b.tokens >= MaxGroup || now.Sub(b.since) >= maxGroupAge
}

// Groups empties the buffer into one event per execution, in the order of their last
// tokens.
func (b *Buffer) Groups() []flow.Event {
	if b.tokens == 0 {
		return nil
	}
	groups := slices.Collect(maps.Values(b.byPath))
	sort.Slice(groups, func(i, k int) bool { return groups[i].last() < groups[k].last() })
	events := make([]flow.Event, len(groups))
	for i, g := range groups {
		events[i] = g.event
		if b.tokens > 1 {
			events[i] = g.combined()
		}
	}
	*b = Buffer{}
	return events
}

func (g *group) last() int64 { return g.seqs[len(g.seqs)-1] }

// combined returns the event that combines the tokens in the log.
func (g *group) combined() flow.Event {
	e := g.event
	e.Seq = g.last()
	e.Fields = []flow.Field{
		{Key: "text", Value: g.text.String()}, {Key: fieldFirstSeq, Value: g.seqs[0]}, {Key: fieldLengths, Value: g.lengths},
	}
	if e.Seq-g.seqs[0] >= int64(len(g.seqs)) {
		steps := make([]any, len(g.seqs)-1)
		for i := range steps {
			steps[i] = g.seqs[i+1] - g.seqs[i]
		}
		e.Fields = append(e.Fields, flow.Field{Key: fieldSteps, Value: steps})
	}
	return e
}
