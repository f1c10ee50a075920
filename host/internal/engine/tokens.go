package engine

import (
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/execpath"
	"github.com/the-edge-agent/tea/host/internal/secret"
)

// mostShown bounds the text that is kept of one call, to continue it.
const mostShown = 1 << 20

// tokens are the texts that the calls of one execution stream. A reader gets
// each text once: a call that is repeated continues the text where the failed
// attempt broke off. The zero value is ready. It is safe for concurrent use.
type tokens struct {
	mu    sync.Mutex
	mask  *secret.Stream
	shown map[execpath.Path]*shownText // by the path of the call
}

// shownText is what a reader has got of a call's text.
type shownText struct {
	text  strings.Builder
	owner *callHost // the attempt that adds to it
	cut   bool      // text is not all of it
}

// tokenCursor is where an attempt of a call is in the text.
type tokenCursor struct {
	begun bool
	at    int
	muted bool // it says something else than the attempt before it
	over  bool // it has said more than is kept
}

// next returns what is new to the reader in a token of an attempt. A token of
// an attempt that another one has replaced is not.
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
		c.muted = true // more was shown than is known
		return ""
	case s.text.Len()+len(fresh) > mostShown:
		s.cut, c.over = true, true
	default:
		s.text.WriteString(fresh)
		c.at += len(fresh)
	}
	return fresh
}

// token emits what is new in a piece of text that a call streams. Secrets are
// masked in the text as a whole, so its end may wait for the next piece.
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

// endTokens emits what token held back.
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
