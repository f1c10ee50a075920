package server

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
)

// above has the conditions result > 80 and result < 70.
type above struct{}

func (above) When(_ context.Context, result, _ any) (bool, bool, error) {
	n, ok := result.(int)
	if !ok {
		return false, true, errors.New("not a number")
	}
	return n > 80, true, nil
}

func (above) Reset(_ context.Context, result, _ any) (bool, bool, error) {
	return result.(int) < 70, true, nil
}

// always has no conditions.
type always struct{}

func (always) When(context.Context, any, any) (bool, bool, error)  { return false, false, nil }
func (always) Reset(context.Context, any, any) (bool, bool, error) { return false, false, nil }

func conditional(c host.ValuesConfig) host.ValuesConfig {
	present(&c.When)
	return c
}

func withReset(c host.ValuesConfig) host.ValuesConfig {
	present(&c.Reset)
	return conditional(c)
}

func present[T any](p **T) { *p = new(T) }

func TestEdgesStartRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		config     host.ValuesConfig
		conditions conditions
		// values are read one second apart.
		values []any
		// starts are the seconds of the starts, waits those with something to wait for.
		starts, waits []int
	}{
		{"edge", conditional(host.ValuesConfig{}), above{}, []any{0, 90, 95, 75, 90, 60, 85}, []int{1, 4, 6}, nil},
		{"first value", conditional(host.ValuesConfig{}), above{}, []any{90, 90}, []int{0}, nil},
		{"hysteresis", withReset(host.ValuesConfig{}), above{}, []any{90, 75, 90, 60, 75, 90}, []int{0, 5}, nil},
		{"level", conditional(host.ValuesConfig{Each: true}), above{}, []any{0, 90, 95, 75, 90}, []int{1, 2, 4}, nil},
		{"debounce", conditional(host.ValuesConfig{Hold: 2 * time.Second}), above{}, []any{90, 90, 0, 90, 90, 90, 90}, []int{5}, []int{0, 1, 3, 4}},
		{"interval", conditional(host.ValuesConfig{MinInterval: 4 * time.Second}), above{}, []any{90, 0, 90, 90, 90, 0, 90, 0, 0}, []int{0, 4}, []int{2, 3, 6}},
		{"level with an interval", conditional(host.ValuesConfig{Each: true, MinInterval: 2 * time.Second}), above{}, []any{90, 90, 90, 90}, []int{0, 2}, []int{1, 3}},
		{"poll without a condition", host.ValuesConfig{Each: true, Every: time.Second}, always{}, []any{1, 1, 2, 2, 1}, []int{0, 2, 4}, nil},
		{"stream without a condition", host.ValuesConfig{Each: true}, always{}, []any{1, 1, 2}, []int{0, 1, 2}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := edge{ValuesConfig: &c.config, conditions: c.conditions}
			var starts, waits []int
			for i, v := range c.values {
				next, start, wait, err := e.step(t.Context(), v, nil, time.Unix(int64(1000+i), 0))
				if err != nil {
					t.Fatal(err)
				}
				if start {
					starts = append(starts, i)
				}
				if wait > 0 {
					waits = append(waits, i)
				}
				e.position = next
			}
			if diff := cmp.Diff(fmt.Sprint(c.starts, c.waits), fmt.Sprint(starts, waits)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A condition that fails, a position that was lost and a clock that was set back start
// no run too many and do not prevent the next one.
func TestEdgesAfterTrouble(t *testing.T) {
	t.Parallel()
	config := conditional(host.ValuesConfig{MinInterval: time.Hour})
	e := edge{ValuesConfig: &config, conditions: above{}, unknown: true}
	at := time.Unix(1e9, 0)
	step := func(v any) (start bool, err error) {
		next, start, _, err := e.step(t.Context(), v, nil, at)
		e.position = next
		return start, err
	}
	for _, c := range []struct {
		value any
		after time.Duration
		want  bool
	}{{90, 0, false}, {0, 0, false}, {90, 0, true}, {0, 0, false}, {90, -48 * time.Hour, true}} {
		at = at.Add(c.after)
		if start, err := step(c.value); err != nil || start != c.want {
			t.Errorf("%v after %s: %v, %v", c.value, c.after, start, err)
		}
	}
	if start, err := step("x"); err == nil || start || !e.position.Active {
		t.Errorf("a condition that fails: %v, %v, %+v", start, err, e.position)
	}
}
