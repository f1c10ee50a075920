package value_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/value"
)

func TestFieldsAllArrive(t *testing.T) {
	t.Parallel()
	in := map[string]any{"n": 1, "list": []int{2}, "err": errors.New("no disk"), "fn": func() {}, "none": nil}
	got := value.Fields(in)
	reason, _ := got["fn"].(string)
	if !strings.Contains(reason, "func()") {
		t.Errorf("the reason for a function is %q", reason)
	}
	delete(got, "fn")
	if diff := cmp.Diff(map[string]any{"n": int64(1), "list": []any{int64(2)}, "err": "no disk", "none": nil}, got); diff != "" {
		t.Error(diff)
	}
	if _, kept := in["n"].(int); !kept {
		t.Error("the fields were changed")
	}
	if got := value.Fields(nil); len(got) != 0 {
		t.Errorf("no fields give %v", got)
	}
}
