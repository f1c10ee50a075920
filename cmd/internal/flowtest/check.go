package flowtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// check compares the result of a run with the expectations of the test. A test
// without a status expects the run to be done.
func (r *testRun) check(res *flow.Result) []Failure {
	t := r.test
	var failures []Failure
	expects := func(key string) bool {
		return slices.ContainsFunc(t.Expect, func(e Expectation) bool { return e.Key == key })
	}
	if !expects("status") && !expects("error") && !expects("error_type") && !expects("pending") && res.Status != flow.Done {
		failures = append(failures, t.failf("the run is %s%s", res.Status, because(res))...)
	}
	exact := slices.ContainsFunc(t.Expect, func(e Expectation) bool { return e.Key == "exact" && e.Value == true })
	for _, e := range t.Expect {
		for _, message := range e.check(res, r, exact) {
			failures = append(failures, Failure{e.Pos, message})
		}
	}
	return failures
}

func because(res *flow.Result) string {
	if res.Err == nil {
		return ""
	}
	return ": " + res.Err.Error()
}

// check returns the failures of one expectation.
func (e Expectation) check(res *flow.Result, r *testRun, exact bool) []string {
	switch e.Key {
	case "status":
		if e.Value != string(res.Status) {
			return []string{fmt.Sprintf("status: want %v, got %s%s", e.Value, res.Status, because(res))}
		}
	case "state":
		return difference("state", e.Value, res.State, exact)
	case "error":
		want, _ := e.Value.(string)
		if res.Err == nil || !strings.Contains(res.Err.Error(), want) {
			return []string{fmt.Sprintf("error: want one with %q, got %s", want, showError(res.Err))}
		}
	case "error_type":
		var failure *tea.Error
		if !errors.As(res.Err, &failure) || string(failure.Type) != e.Value {
			return []string{fmt.Sprintf("error_type: want %v, got %s", e.Value, showError(res.Err))}
		}
	case "visited":
		if !value.Equal(e.Value, r.visited) && !(len(r.visited) == 0 && !value.Truthy(e.Value)) {
			return []string{fmt.Sprintf("visited: want %s, got %s", show(e.Value), show(r.visited))}
		}
	case "writes":
		return difference("writes", e.Value, r.writes, exact)
	case "pending":
		ids := make([]any, len(res.Pending))
		for i, p := range res.Pending {
			ids[i] = p.ID
		}
		if !value.Equal(e.Value, ids) {
			return []string{fmt.Sprintf("pending: want %s, got %s", show(e.Value), show(ids))}
		}
	}
	return nil
}

// difference compares deeply. Objects can have more members than expected
// unless the comparison is exact.
func difference(path string, want, got any, exact bool) []string {
	object, ok := want.(map[string]any)
	other, same := got.(map[string]any)
	if !ok || !same {
		if list, isList := want.([]any); isList {
			return listDifference(path, list, got, exact)
		}
		if !value.Equal(want, got) {
			return []string{fmt.Sprintf("%s: want %s, got %s", path, show(want), show(got))}
		}
		return nil
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		v, there := other[key]
		if !there {
			out = append(out, fmt.Sprintf("%s.%s: want %s, got nothing", path, key, show(object[key])))
			continue
		}
		out = append(out, difference(path+"."+key, object[key], v, exact)...)
	}
	if exact {
		for _, key := range slices.Sorted(maps.Keys(other)) {
			if _, expected := object[key]; !expected {
				out = append(out, fmt.Sprintf("%s.%s: not expected, got %s", path, key, show(other[key])))
			}
		}
	}
	return out
}

func listDifference(path string, want []any, got any, exact bool) []string {
	list, ok := got.([]any)
	if !ok || len(list) != len(want) {
		return []string{fmt.Sprintf("%s: want %s, got %s", path, show(want), show(got))}
	}
	var out []string
	for i := range want {
		out = append(out, difference(fmt.Sprintf("%s[%d]", path, i), want[i], list[i], exact)...)
	}
	return out
}

func showError(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

func show(v any) string {
	raw, err := value.Encode(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}
