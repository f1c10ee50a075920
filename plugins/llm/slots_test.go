package llm

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestSlots(t *testing.T) {
	t.Parallel()
	var s slots
	release, err := s.acquire(t.Context(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []slotKey{{"b", 1}, {"a", 0}} { // another server, no limit
		if _, err := s.acquire(t.Context(), other.server, other.limit); err != nil {
			t.Error(err)
		}
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if _, err := s.acquire(ctx, "a", 1); !errors.Is(err, enough) {
		t.Errorf("a call that waits cannot be cancelled: %v", err)
	}
	release()
	if _, err := s.acquire(t.Context(), "a", 1); err != nil {
		t.Error(err)
	}
}

// unpriced finds no price.
func unpriced(*target, ...string) *Price { return nil }

// slow is a model that thinks for two and a half minutes.
type slow struct{ chat.Provider }

func (slow) Chat(context.Context, *chat.Request, func(chat.Delta)) (*chat.Answer, error) {
	time.Sleep(150 * time.Second) //nolint:forbidigo // the clock of the bubble
	return &chat.Answer{Text: "a"}, nil
}

// A host ends calls that are silent for minutes.
func TestCallThatWaitsIsNotSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		host := new(teatest.Host)
		x := &exchange{price: unpriced, call: &tea.Request{Host: host}, limits: new(slots), targets: []*target{{Provider: slow{}, model: "m", server: "ollama"}}}
		if _, err := x.ask(t.Context(), &chat.Request{}, false); err != nil {
			t.Fatal(err)
		}
		want := []teatest.Progress{{Fraction: -1, Message: "waiting for m at ollama"}, {Fraction: -1, Message: "waiting for m at ollama"}}
		if diff := cmp.Diff(want, host.Recorded().Progress); diff != "" {
			t.Error(diff)
		}
	})
}
