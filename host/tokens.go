package host

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/host/flow"
)

// Tokens of one stream are stored together, since a separate event would take a
// hundred bytes for three. The group has the seq of its last token, so that the log
// stays in order; groups that are stored together can overlap.
const (
	maxGroupBytes  = 32 << 10
	maxGroupTokens = 1000
	maxGroupAge    = 500 * time.Millisecond
)

// The fields of an event in the log that combines several tokens.
const (
	fieldFirstSeq = "first_seq" // the seq of the first token
	fieldLengths  = "lengths"   // of the tokens, in bytes
	fieldSteps    = "seq_steps" // from each token's seq to the next; omitted if all are 1
)

// tokenBuffer collects tokens by the execution that streams them. The zero value is
// empty.
type tokenBuffer struct {
	byPath map[string]*tokenGroup
	tokens int
	bytes  int
	since  time.Time
}

// tokenGroup is a sequence of tokens of one execution.
type tokenGroup struct {
	event   flow.Event // of the first token
	text    strings.Builder
	seqs    []int64
	lengths []any
}

// add adds a token; it returns false for any other event.
func (b *tokenBuffer) add(e flow.Event) bool {
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
		b.byPath, b.since = map[string]*tokenGroup{}, e.Time
	}
	g := b.byPath[e.Path]
	if g == nil {
		g = &tokenGroup{event: e}
		b.byPath[e.Path] = g
	}
	g.text.WriteString(text)
	g.seqs, g.lengths = append(g.seqs, e.Seq), append(g.lengths, int64(len(text)))
	b.tokens++
	b.bytes += len(text)
	return true
}

// full reports whether the tokens have to be stored.
func (b *tokenBuffer) full(now time.Time) bool {
	return b.bytes >= maxGroupBytes || b.tokens >= maxGroupTokens || now.Sub(b.since) >= maxGroupAge
}

// groups empties the buffer into one event per execution, in the order of their last
// tokens.
func (b *tokenBuffer) groups() []flow.Event {
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
	*b = tokenBuffer{}
	return events
}

func (g *tokenGroup) last() int64 { return g.seqs[len(g.seqs)-1] }

// combined returns the event that combines the tokens in the log.
func (g *tokenGroup) combined() flow.Event {
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

// splitTokens splits a line of the log that combines several tokens into their
// events; false for any other line.
func splitTokens(line []byte) ([]flow.Event, bool) {
	if !bytes.Contains(line, []byte(`"`+fieldFirstSeq+`":`)) {
		return nil, false
	}
	var g struct {
		TS       time.Time      `json:"ts"`
		RunID    string         `json:"run_id"`
		Event    flow.EventType `json:"event"`
		Node     string         `json:"node"`
		Path     string         `json:"path"`
		Text     string         `json:"text"`
		FirstSeq int64          `json:"first_seq"`
		Lengths  []int          `json:"lengths"`
		Steps    []int64        `json:"seq_steps"`
	}
	if json.Unmarshal(line, &g) != nil || g.Event != flow.EventToken || g.Steps != nil && len(g.Steps) != len(g.Lengths)-1 {
		return nil, false
	}
	events := make([]flow.Event, len(g.Lengths))
	seq := g.FirstSeq
	for i, length := range g.Lengths {
		if length < 0 || length > len(g.Text) {
			return nil, false
		}
		events[i] = flow.Event{Seq: seq, Time: g.TS, RunID: g.RunID, Type: flow.EventToken, Node: g.Node, Path: g.Path, Fields: []flow.Field{{Key: "text", Value: g.Text[:length]}}}
		g.Text = g.Text[length:]
		if seq++; i < len(g.Steps) {
			seq += g.Steps[i] - 1
		}
	}
	return events, true
}

// eventReader passes the events after a seq to fn in order, tokens one by one.
type eventReader struct {
	after int64
	fn    func(seq int64, line []byte) error
	// held are tokens of overlapping groups.
	held []flow.Event
	last int64
}

// line reads the next line of the log.
func (r *eventReader) line(seq int64, line []byte) error {
	tokens, ok := splitTokens(line)
	if !ok || len(tokens) == 0 || tokens[0].Seq > r.last {
		if err := r.flush(); err != nil {
			return err
		}
	}
	if !ok {
		return r.fn(seq, line)
	}
	r.held = append(r.held, tokens...)
	r.last = max(r.last, seq)
	return nil
}

// flush passes on the held tokens.
func (r *eventReader) flush() error {
	held := r.held
	r.held = nil
	sort.Slice(held, func(i, j int) bool { return held[i].Seq < held[j].Seq })
	for _, e := range held {
		if e.Seq <= r.after {
			continue
		}
		line, err := e.MarshalJSON()
		if err == nil {
			err = r.fn(e.Seq, line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
