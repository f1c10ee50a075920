package embedding_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/embedding"
)

func TestVector(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]embedding.Vector{
		"null": nil, "[]": {}, "[ ]": {}, "[1, -2.5e-1]": {1, -.25}, "[1e300]": {float32(math.Inf(1))},
	} {
		var got embedding.Vector
		if err := json.Unmarshal([]byte(text), &got); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"1", `"a"`, "{}", "[null]", "[[1]]", `["1"]`, "[true]"} {
		if err := json.Unmarshal([]byte(text), new(embedding.Vector)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// host fails with an error.
type host struct {
	tea.Host
	err error
}

func (h host) Invoke(context.Context, string, any) (*tea.Response, error) { return nil, h.err }

func TestMissingModelIsNamed(t *testing.T) {
	t.Parallel()
	req := &tea.Request{Host: host{err: tea.Errorf(tea.NotFound, `model "tiny" not found`)}}
	_, _, err := embedding.Create(t.Context(), req, []string{"a"}, "tiny")
	if e := tea.AsError(err); e.Type != tea.DependencyMissing || !strings.Contains(e.Message, `model "tiny" not found`) {
		t.Error(err)
	}
}
