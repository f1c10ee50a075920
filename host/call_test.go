package host

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
)

// The parameters arrive as they are: with any name, without templates, with
// every kind of value.
func TestLoadCallPassesParameters(t *testing.T) {
	t.Parallel()
	echo := func(_ context.Context, req *tea.Request) (*tea.Response, error) {
		v, err := req.Params.Value()
		return tea.Respond(v), err
	}
	h, err := New(Options{Actions: []tea.Action{{Name: "test.echo", Handle: echo}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	for name, params := range map[string]map[string]any{
		"none":      {},
		"values":    {"i": int64(9007199254740993), "f": 2.0, "none": nil, "list": []any{}, "object": map[string]any{}, "template": "{{ state.x }}"},
		"odd names": {"a b": int64(1), `q"uote`: int64(2), `back\slash`: int64(3), "ünï": int64(4), "new\nline": int64(5), "{{ x }}": int64(6), "": int64(7), "it's": int64(8), "a.b": int64(9)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wf, input, err := h.LoadCall("test.echo", params, LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = wf.Close() })
			res, err := wf.Run(t.Context(), RunOptions{Input: input})
			if err != nil || res.Err != nil {
				t.Fatal(err, res.Err)
			}
			if diff := cmp.Diff(any(params), res.State[CallResult]); diff != "" {
				t.Error(diff)
			}
		})
	}
}
