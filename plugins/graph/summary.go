package graph

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/words"
)

// summary is a text for a model: one line per fact, up to a size.
type summary struct {
	text    strings.Builder
	left    float64 // tokens
	cut     bool
	query   *words.Query
	sources map[string]bool
}

func newSummary(maxTokens int, query *words.Query) *summary {
	return &summary{left: float64(maxTokens), query: query, sources: map[string]bool{}}
}

// write writes each entity, followed by its relations to those before it.
func (w *summary) write(r *RetrieveContextResult) {
	size := w.left
	written := map[string]bool{}
	for i := range r.Entities {
		e := &r.Entities[i].Entity
		w.entity(e, r.sources[i])
		written[e.ID] = true
		for j := range r.Relations {
			if s := &r.Relations[j]; written[s.From] && written[s.To] && (s.From == e.ID || s.To == e.ID) {
				w.line(describeRelation(s), s.Source)
			}
		}
	}
	r.ContextSummary = strings.TrimSuffix(w.text.String(), "\n")
	r.Tokens = int(math.Ceil(size - w.left))
	r.Sources = append(r.Sources, slices.Sorted(maps.Keys(w.sources))...)
	r.Truncated = r.Truncated || w.cut
}

// line writes a line if it fits.
func (w *summary) line(text string, sources ...string) {
	cost := tokens(text) + 1
	if cost > w.left {
		w.cut = true
		return
	}
	w.left -= cost
	w.text.WriteString(text)
	w.text.WriteByte('\n')
	for _, source := range sources {
		if source = oneLine(source); source != "" {
			w.sources[source] = true
		}
	}
}

// entity writes an entity. If the line is too long, it has the properties that fit, and
// the part of the text that fits and matches the query.
func (w *summary) entity(e *Entity, sources []string) {
	line := fmt.Sprintf("%s (%s)", oneLine(e.ID), oneLine(e.Type))
	properties, text := describeProperties(e.Properties), oneLine(e.Text)
	whole := line
	if len(properties) > 0 {
		whole += ": " + join(properties)
	}
	if text != "" {
		whole += ". " + text
	}
	if tokens(whole)+1 <= w.left {
		w.line(whole, sources...)
		return
	}
	w.cut = true
	// Half of the rest is for the text, unless it needs less.
	line = w.fit(line, ": ", properties, max(w.left/2, w.left-tokens(text)-2))
	if text != "" {
		line = w.fit(line, ". ", []described{{value: text}}, w.left)
	}
	w.line(line, sources...)
}

// fit appends to text the parts, or excerpts of them, that fit into size.
func (w *summary) fit(text, separator string, parts []described, size float64) string {
	for _, part := range parts {
		before := text + separator + part.name
		if kept := excerpt(part.value, w.query, size-tokens(before)-1); kept != "" {
			text, separator = before+kept, ", "
		}
	}
	return text
}

// oneLine returns an untrusted text without line breaks, control and invisible characters,
// so that it cannot imitate other lines or control a terminal.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), isInvisible(r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// describeRelation returns a relation as a line of text.
func describeRelation(r *Relation) string {
	details := []string{}
	if facts := describeProperties(r.Properties); len(facts) > 0 {
		details = append(details, join(facts))
	}
	if r.ValidFrom != "" {
		details = append(details, "since "+r.ValidFrom)
	}
	if r.ValidTo != "" {
		details = append(details, "until "+r.ValidTo)
	}
	text := oneLine(r.From) + " " + oneLine(r.Type) + " " + oneLine(r.To)
	if len(details) > 0 {
		text += " (" + strings.Join(details, "; ") + ")"
	}
	return text
}

// described is a property: its name with a space, and its value.
type described struct{ name, value string }

func describeProperties(properties map[string]any) []described {
	parts := make([]described, 0, len(properties))
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		v, ok := properties[name].(string)
		if !ok {
			text, err := value.Encode(properties[name])
			if err != nil {
				continue // a stored value always has a JSON form
			}
			v = string(text)
		}
		parts = append(parts, described{name: oneLine(name) + " ", value: oneLine(v)})
	}
	return parts
}

func join(properties []described) string {
	var b strings.Builder
	for i, p := range properties {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.name)
		b.WriteString(p.value)
	}
	return b.String()
}

const (
	// minExcerpt is the smallest size of an excerpt in tokens.
	minExcerpt = 8
	// maxWindows bounds the places of a text that are considered for an excerpt.
	maxWindows = 500
)

// excerpt returns a text of at most size tokens, otherwise the part with the most words of
// the query; "" if there is no room for one.
func excerpt(text string, query *words.Query, size float64) string {
	if tokens(text) <= size {
		return text
	}
	const dots = "… "
	if size -= 2 * tokens(dots); size < minExcerpt {
		return ""
	}
	pieces := split(text)
	costs := make([]float64, len(pieces))
	found := make([][]int, len(pieces)) // words of the query
	var places []int
	for i, piece := range pieces {
		costs[i] = tokens(piece)
		for _, word := range words.All(piece) {
			if at, _ := query.Match(word); at >= 0 {
				found[i] = append(found[i], at)
			}
		}
		if len(found[i]) > 0 && len(places) < maxWindows {
			places = append(places, i)
		}
	}
	if len(places) == 0 {
		places = []int{0}
	}
	var from, to, most int
	for _, place := range places {
		begin, end := window(pieces, costs, place, size)
		different := map[int]bool{}
		for _, matches := range found[place:end] {
			for _, at := range matches {
				different[at] = true
			}
		}
		if len(different) > most || to == 0 {
			from, to, most = begin, end, len(different)
		}
	}
	if from >= to {
		return ""
	}
	part := strings.TrimSpace(strings.Join(pieces[from:to], ""))
	if from > 0 {
		part = dots + part
	}
	if to < len(pieces) {
		part += " …"
	}
	return part
}

// maxBefore bounds the tokens before a place in an excerpt.
const maxBefore = 40

// window returns the pieces around a place that fit: from the beginning of its sentence, or
// from some words before it if the beginning is too far, as in a log.
func window(pieces []string, costs []float64, place int, size float64) (begin, end int) {
	begin, end = place, place
	before := min(maxBefore, size/3)
	for end < len(pieces) && costs[end] <= size {
		size -= costs[end]
		end++
	}
	for begin > 0 && before >= costs[begin-1] && !strings.ContainsAny(strings.TrimSpace(pieces[begin-1]), ".!?。！？") {
		begin--
		before -= costs[begin]
		size -= costs[begin]
	}
	// The room for the words before the place is taken from the end.
	for size < 0 && end > place+1 {
		end--
		size += costs[end]
	}
	if size < 0 {
		begin = place
	}
	return begin, end
}

// split cuts a text at spaces, and at some number of characters where there are none. The
// joined pieces are the text.
func split(text string) []string {
	const maxPiece = 12 // characters without spaces
	var pieces []string
	start, n := 0, 0
	for i, r := range text {
		if n > 0 && (text[i-1] == ' ' || n >= maxPiece && r >= utf8.RuneSelf && !unicode.IsMark(r) || n >= 8*maxPiece) {
			pieces = append(pieces, text[start:i])
			start, n = i, 0
		}
		n++
	}
	return append(pieces, text[start:])
}

// tokens estimates the number of tokens of a text, and rather overestimates it. A
// tokenizer would need more memory than the graph.
func tokens(text string) float64 {
	ascii, others := 0, 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			others++
		}
	}
	return float64(ascii)/3.5 + float64(others)
}
