package engine

import (
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/secret"
	"github.com/the-edge-agent/tea/internal/execpath"
)

// mostShown bounds the text of one call that is kept for continuation.
const mostShown = 1 << 20

// tokens are the texts that the calls of one execution stream. A reader gets each
// text once: a repeated call continues the text of the failed attempt. The zero
// value is ready for use. It is safe for concurrent use.
type tokens struct {
	mu    sync.Mutex
	mask  *secret.Stream
	shown map[execpath.Path]*shownText // by the path of the call
}

// shownText is the part of a call's text that was emitted.
type shownText struct {
	text  strings.Builder
	owner *callHost // the attempt that adds to it
	cut   bool      // text is incomplete
}

// tokenCursor is the position of an attempt of a call in the text.
type tokenCursor struct {
	begun bool
	at    int
	muted bool // its text differs from the previous attempt's
	over  bool // its text is longer than what is kept
}

// next returns the part of an attempt's token that is new to the reader. A token of
// a replaced attempt is not new.
func (t *tokens) next(h *callHost, token string) string {
	s := t.shown[h.path]
	if s == nil {
		if t.shown == nil {
			t.shown = map[execpath.Path]*shownText{}
		}
		s = &shownText{}
		t.shown[h.path] = s
	}
	c := &h.cursor
	if !c.begun {
		c.begun, s.owner = true, h
	}
	if s.owner != h || c.muted {
		return ""
	}
	known := s.text.String()[c.at:]
	n := min(len(known), len(token))
	if known[:n] != token[:n] {
		c.muted = true
		return ""
	}
	c.at += n
	fresh := token[n:]
	switch {
	case fresh == "":
	case s.cut && !c.over:
		c.muted = true // more was emitted than is kept
		return ""
	case s.text.Len()+len(fresh) > mostShown:
		s.cut, c.over = true, true
	default:
		s.text.WriteString(fresh)
		c.at += len(fresh)
	}
	return fresh
}

// token emits the new part of a text that a call streams. Secrets are masked in the
// text as a whole, so its end may wait for the next piece.
func (x *execution) token(h *callHost, text string) {
	if !x.frame.run.listening() {
		return
	}
	x.tokens.mu.Lock()
	defer x.tokens.mu.Unlock()
	if text = x.tokens.next(h, text); text == "" {
		return
	}
	if x.tokens.mask == nil {
		x.tokens.mask = x.frame.run.o.Secrets.Stream()
	}
	x.emitToken(x.tokens.mask.Next(text))
}

// endTokens emits the text that token held back.
func (x *execution) endTokens() {
	x.tokens.mu.Lock()
	defer x.tokens.mu.Unlock()
	if x.tokens.mask != nil {
		x.emitToken(x.tokens.mask.End())
	}
}

func (x *execution) emitToken(text string) {
	if text != "" {
		x.frame.run.emit(flow.EventToken, x.node.Name, x.path, field("text", text))
	}
}
