package state_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/host/internal/state"
)

type (
	list   = []any
	object = map[string]any
)

func keys(list ...spec.Key) *state.Schema { return state.NewSchema(list) }

func newState(values object) *state.State {
	s := new(state.State)
	s.Reset(values)
	return s
}

func wantValues(t *testing.T, s *state.State, want object) {
	t.Helper()
	if d := cmp.Diff(want, s.Values()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestForksAreIndependent(t *testing.T) {
	t.Parallel()
	parent := newState(object{"a": int64(1), "list": list{int64(1)}})
	left, right := parent.Fork(), parent.Fork()
	before := parent.Values()
	left.Set("a", int64(2))
	right.Merge(object{"b": true})
	parent.Set("a", int64(3))
	nested := left.Fork()
	nested.Set("c", nil)
	wantValues(t, parent, object{"a": int64(3), "list": list{int64(1)}})
	wantValues(t, left, object{"a": int64(2), "list": list{int64(1)}})
	wantValues(t, right, object{"a": int64(1), "list": list{int64(1)}, "b": true})
	wantValues(t, nested, object{"a": int64(2), "list": list{int64(1)}, "c": nil})
	if d := cmp.Diff(object{"a": int64(1), "list": list{int64(1)}}, before); d != "" {
		t.Errorf("Values changed later:\n%s", d)
	}
	if v, ok := nested.Get("c"); v != nil || !ok {
		t.Errorf("Get = %v, %v", v, ok)
	}
}

// TestForksRunConcurrently is for the race detector.
func TestForksRunConcurrently(t *testing.T) {
	t.Parallel()
	schema := keys(spec.Key{Name: "list", Type: spec.TypeList, Reducer: spec.ReduceAppend})
	parent := newState(object{"list": list{}})
	var wg sync.WaitGroup
	for i := range 8 {
		fork := parent.Fork()
		wg.Go(func() {
			for k := range 50 {
				if err := fork.Apply(object{"list": int64(k), fmt.Sprint(i): int64(k)}, schema); err != nil {
					t.Error(err)
				}
			}
			if got, _ := fork.Get("list"); len(got.(list)) != 50 {
				t.Errorf("%d elements", len(got.(list)))
			}
		})
	}
	wg.Wait()
	wantValues(t, parent, object{"list": list{}})
}

func TestNewOfNothing(t *testing.T) {
	t.Parallel()
	s := newState(nil)
	if err := s.Fork().Apply(object{"a": nil}, nil); err != nil {
		t.Fatal(err)
	}
	s.Set("b", true)
	wantValues(t, s, object{"b": true})
}

func TestFailedApplyChangesNothing(t *testing.T) {
	t.Parallel()
	schema := keys(
		spec.Key{Name: "n", Type: spec.TypeInt, Reducer: spec.ReduceAdd},
		spec.Key{Name: "list", Type: spec.TypeList, Reducer: spec.ReduceExtend},
		spec.Key{Name: "text", Type: spec.TypeString},
	)
	for _, test := range []struct {
		update object
		want   string
	}{
		{object{"free": true, "text": int64(3)}, `state key "text": expected str, got int (3)`},
		{object{"free": true, "list": "x"}, `state key "list": reducer extend: the update must be a list, got str ("x")`},
		{object{"free": true, "n": 0.5}, `state key "n": expected int, got float (1.5)`},
	} {
		s := newState(object{"n": int64(1)})
		err := s.Apply(test.update, schema)
		if err == nil || err.Error() != test.want {
			t.Errorf("err = %v, want %s", err, test.want)
		}
		wantValues(t, s, object{"n": int64(1)})
	}
}

func TestErrorsAreTyped(t *testing.T) {
	t.Parallel()
	schema := keys(spec.Key{Name: "n", Type: spec.TypeInt}, spec.Key{Name: "m", Type: spec.TypeAny, Reducer: spec.ReduceMax})
	var typed *flow.TypeError
	if err := newState(nil).Apply(object{"n": "x"}, schema); !errors.As(err, &typed) || typed.Key != "n" {
		t.Errorf("err = %v", err)
	}
	var reduced *state.ReduceError
	if err := newState(object{"m": list{}}).Apply(object{"m": "x"}, schema); !errors.As(err, &reduced) || reduced.Reducer != spec.ReduceMax {
		t.Errorf("err = %v", err)
	}
}
