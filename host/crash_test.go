package host_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// crashCause is the cause of an error by which the engine recognizes a crash.
type crashCause struct{}

func (crashCause) Error() string { return "killed" }
func (crashCause) Crashed()      {}

// dyingPlugin is a plugin whose process dies during the first calls, after some
// tokens; the last entry of says is answered.
func dyingPlugin(idempotent bool, calls *int, says ...[]string) tea.Action {
	return tea.Action{Name: "mortal.talk", Summary: "Talks.", Streaming: true, Idempotent: idempotent, Handle: func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
		words := says[min(*calls, len(says)-1)]
		*calls++
		for _, word := range words {
			req.Host.Token(ctx, word)
		}
		if *calls < len(says) {
			return nil, tea.Errorf(tea.PluginCrashed, "plugin mortal died: %w", crashCause{})
		}
		return tea.Respond(map[string]any{"text": strings.Join(words, "")}), nil
	}}
}

func TestCallThatACrashHasEnded(t *testing.T) {
	t.Parallel()
	const plain = `nodes: [{name: a, uses: mortal.talk}]`
	for _, c := range []struct {
		name, flow string
		fragile    bool // not idempotent
		says       [][]string
		status     flow.Status
		read       string
		calls      int
		retries    int
	}{
		{"continues its text", plain, false, [][]string{{"Hel", "lo"}, {"Hello ", "world"}}, flow.Done, "Hello world", 2, 1},
		{"by other pieces", plain, false, [][]string{{"Hello w"}, {"Hell", "o", " world"}}, flow.Done, "Hello world", 2, 1},
		{"says no other text", plain, false, [][]string{{"Hello"}, {"Help", " me"}}, flow.Done, "Hello", 2, 1},
		{"said nothing", plain, false, [][]string{{}, {"Hello"}}, flow.Done, "Hello", 2, 1},
		{"once only", plain, false, [][]string{{"He"}, {"Hell"}, {"Hello"}}, flow.Failed, "Hell", 2, 1},
		{"not if it has effects", plain, true, [][]string{{"He"}, {"Hello"}}, flow.Failed, "He", 1, 0},
		{"in Lua", `nodes: [{name: a, run: 'return tea.action("mortal.talk")'}]`, false, [][]string{{"He"}, {"Hello"}}, flow.Done, "Hello", 2, 1},
		{
			"by the node's policy alone", `nodes: [{name: a, uses: mortal.talk, retry: {max_retries: 1, backoff_base_ms: 1}}]`,
			false,
			[][]string{{"He"}, {"Hell"}, {"Hello"}},
			flow.Failed, "Hell", 2, 1,
		},
		{
			"once next to a branch's policy", `
nodes:
  - {name: a, parallel: {retry: {max_retries: 1, base_delay: 0.001}}}
  - {name: b, uses: mortal.talk}
  - {name: join, run: "return {failed = not parallel_results[1].success}"}
edges: [{from: a, parallel: [b], fan_in: join}]`,
			false,
			[][]string{{}, {}, {}, {}, {"Hello"}},
			flow.Done, "", 3, 2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			h, err := host.New(host.Options{Actions: []tea.Action{dyingPlugin(!c.fragile, &calls, c.says...)}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { h.Close() })
			wf, err := h.Parse("test.yaml", []byte(c.flow), host.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { wf.Close() })
			var read strings.Builder
			retries := 0
			res, _ := wf.Run(t.Context(), host.RunOptions{Events: func(e flow.Event) {
				switch e.Type {
				case flow.EventToken:
					read.WriteString(e.Text("text"))
				case flow.EventRetry:
					retries++
				}
			}})
			if res.Status != c.status || calls != c.calls || retries != c.retries {
				t.Errorf("%s after %d calls and %d retries, want %s, %d, %d: %v", res.Status, calls, retries, c.status, c.calls, c.retries, res.Err)
			}
			if diff := cmp.Diff(c.read, read.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A plugin sees that a call is a repetition.
func TestRepeatedCallIsTheNextAttempt(t *testing.T) {
	t.Parallel()
	var attempts []int
	var keys []string
	frail := tea.Action{Name: "frail.work", Idempotent: true, Handle: func(_ context.Context, req *tea.Request) (*tea.Response, error) {
		attempts, keys = append(attempts, req.Attempt), append(keys, req.IdempotencyKey)
		if req.Attempt == 1 {
			return nil, tea.Errorf(tea.PluginCrashed, "plugin frail died: %w", crashCause{})
		}
		return tea.Respond(map[string]any{}), nil
	}}
	h, err := host.New(host.Options{Actions: []tea.Action{frail}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	wf, err := h.Parse("test.yaml", []byte(`nodes: [{name: a, uses: frail.work}]`), host.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wf.Close() })
	if _, err := wf.Run(t.Context(), host.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 2}, attempts); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if len(keys) == 2 && keys[0] != keys[1] {
		t.Errorf("the idempotency keys differ: %q", keys)
	}
}

// Whatever calls it, an action whose result cannot be read has failed.
func TestResultThatIsNotJSONIsATypedError(t *testing.T) {
	t.Parallel()
	rubbish := tea.Action{Name: "plugin.rubbish", Handle: func(context.Context, *tea.Request) (*tea.Response, error) {
		return &tea.Response{Result: tea.RawPayload([]byte(`{"a":`))}, nil
	}}
	outer := tea.Action{Name: "plugin.outer", Handle: func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
		return req.Host.Invoke(ctx, "plugin.rubbish", nil)
	}}
	h, err := host.New(host.Options{Actions: []tea.Action{rubbish, outer}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	for name, body := range map[string]string{
		"a node": "uses: plugin.rubbish", "Lua": `run: 'return tea.action("plugin.rubbish")'`, "another action": "uses: plugin.outer",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wf, err := h.Parse("test.yaml", []byte("nodes: [{name: a, "+body+"}]"), host.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { wf.Close() })
			res, _ := wf.Run(t.Context(), host.RunOptions{})
			failure := tea.AsError(res.Err)
			if failure == nil || failure.Type != tea.InternalError || !strings.Contains(failure.Message, "result of plugin.rubbish: not JSON") {
				t.Errorf("got %v", res.Err)
			}
		})
	}
}
