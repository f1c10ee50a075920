package driver

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// The action ends when its tokens were seen, so they must come before its result.
func TestTokensAreStreamedDuringTheCall(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	var once sync.Once
	h, err := host.New(host.Options{Actions: []tea.Action{{Name: "say.words", Summary: "Streams.", Handle: func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
		for _, word := range []string{"one ", "two ", "sk-hid", "den-4711 ", "three "} {
			req.Host.Token(ctx, word)
		}
		select {
		case <-seen:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		req.Host.Token(ctx, "end")
		return tea.Respond(map[string]any{"success": true}), nil
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	secrets := map[string]any{"key": "sk-hidden-4711"}
	s := newSite(t, h, secrets)
	var text strings.Builder
	var seqs []int64
	res := s.run(t.Context(), `
nodes:
  - {name: say, uses: say.words}
  - {name: last, run: 'return {}'}
`, host.RunOptions{Secrets: secrets, Events: func(e flow.Event) {
		seqs = append(seqs, e.Seq)
		if e.Type != flow.EventToken {
			return
		}
		if e.Path != "say" || e.Node != "say" {
			t.Errorf("a token is of %s %s", e.Node, e.Path)
		}
		text.WriteString(e.Text("text"))
		if strings.HasPrefix(text.String(), "one two *** thr") {
			once.Do(func() { close(seen) })
		}
	}})
	if res.Status != flow.Done || text.String() != "one two *** three end" {
		t.Errorf("got %s and %q, %v", res.Status, text.String(), res.Err)
	}
	want := make([]int64, len(seqs))
	for i := range want {
		want[i] = int64(i + 1)
	}
	if diff := cmp.Diff(want, seqs); diff != "" {
		t.Errorf("the numbers of the events (-want +got):\n%s", diff)
	}
	_, history := s.history(res.RunID)
	var decoded strings.Builder
	if err := payloads(&decoded, history); err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, part := range []string{"sk-hid", "den-4711"} {
		if strings.Contains(decoded.String(), part) {
			notes = append(notes, part)
		}
	}
	if len(notes) > 0 {
		raw, _ := json.Marshal(notes) //nolint:errchkjson // of texts
		t.Errorf("the history contains %s", raw)
	}
}
