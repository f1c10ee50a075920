package secret

import "github.com/the-edge-agent/tea/sdk/value"

// Stream masks a text that arrives in pieces. It holds back only what may be the
// beginning of a secret, and an incomplete UTF-8 character, until more text
// arrives. It is not safe for concurrent use.
type Stream struct {
	set *Set
	// held is the end of the text so far; the mask for its first covered bytes
	// was already returned.
	held    string
	covered int
}

// Stream starts a text.
func (s *Set) Stream() *Stream { return &Stream{set: s} }

// Next adds a piece and returns the masked text that can no longer change; "" if
// all of it is held back.
func (t *Stream) Next(piece string) string {
	if t.set == nil {
		text := t.held + piece
		whole := value.WholeRunes(text)
		t.held = text[whole:]
		return text[:whole]
	}
	if t.held == "" {
		if _, is := t.set.shortSecret(piece); is {
			return Mask
		}
	}
	text := t.held + piece
	regions, rest := t.set.find(text, toBeContinued)
	rest = min(rest, value.WholeRunes(text))
	for len(regions) > 0 && regions[len(regions)-1].start >= rest { // found again
		regions = regions[:len(regions)-1]
	}
	return t.take(text, rest, regions)
}

// End returns the masked rest of the text. The stream is then empty again.
func (t *Stream) End() string {
	if t.set == nil || t.held == "" {
		rest := t.held
		t.held = ""
		return rest
	}
	regions, _ := t.set.find(t.held, cutOff)
	return t.take(t.held, len(t.held), regions)
}

// take returns the masked text up to rest, and holds the text after it.
func (t *Stream) take(text string, rest int, regions []region) string {
	if t.covered > 0 {
		first := region{0, t.covered, 0}
		for len(regions) > 0 && regions[0].start < first.end {
			first.end = max(first.end, regions[0].end)
			regions = regions[1:]
		}
		t.covered = first.end
	}
	from := min(t.covered, rest)
	covered := t.covered - from
	for i, r := range regions {
		if r.end > rest {
			covered, regions[i].end = r.end-rest, rest
		}
		regions[i].start -= from
		regions[i].end -= from
	}
	t.held, t.covered = text[rest:], covered
	return replace(text[from:rest], regions, func(region) string { return Mask }, nil)
}
