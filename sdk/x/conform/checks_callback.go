package conform

import (
	"context"
	"errors"
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// callbackChecks are about the requests of a plugin to its host.
func callbackChecks() []Check {
	return []Check{
		{Name: "call another action", Remedy: "call back with the call_id of the request, and keep the result as it is", Needs: []string{"probe.invoke"}, Run: checkInvoke},
		{Name: "call with templates", Remedy: "pass key, attempt, roots and output on, and leave out those that are not set", Needs: []string{"probe.invoke_as"}, Run: checkInvokeAs},
		{Name: "another action fails", Remedy: "return the other action's error unchanged", Needs: []string{"probe.invoke"}, Run: checkInvokeFails},
		{Name: "describe another action", Remedy: "pass the host's description on", Needs: []string{"probe.describe"}, Run: checkDescribe},
		{Name: "notes", Remedy: "distinguish a note that is null from one that does not exist", Needs: []string{"probe.note"}, Run: checkNotes},
		{Name: "report usage", Remedy: "stop when the host's answer is budget_exceeded", Needs: []string{"probe.usage"}, Run: checkUsage},
	}
}

func checkInvoke(ctx context.Context, s *Subject) error {
	host := &Host{Actions: map[string]func(context.Context, any) (any, error){
		"text.upper": func(_ context.Context, params any) (any, error) {
			return map[string]any{"given": params, "n": int64(9007199254740993), "whole": 2.0}, nil
		},
	}}
	params := map[string]any{"text": "ü", "none": nil, "floats": []any{3.0, int64(3)}}
	got, err := s.call(ctx, "probe.invoke", map[string]any{"action": "text.upper", "params": params}, host)
	if err != nil {
		return err
	}
	return equal(map[string]any{"result": map[string]any{"given": params, "n": int64(9007199254740993), "whole": 2.0}}, got)
}

func checkInvokeAs(ctx context.Context, s *Subject) error {
	host := &Host{
		Actions: map[string]func(context.Context, any) (any, error){
			"text.echo": func(_ context.Context, params any) (any, error) { return params, nil },
		},
		Render: func(template any, roots map[string]any) (any, error) {
			return map[string]any{"template": template, "roots": roots}, nil
		},
	}
	roots := map[string]any{"task": map[string]any{"n": int64(9007199254740993), "whole": 2.0, "none": nil}}
	given := map[string]any{"text": "{{ task.n }}"}
	rendered := map[string]any{"template": given, "roots": roots}
	output := map[string]any{"template": "{{ result }}", "roots": map[string]any{"task": roots["task"], "result": rendered}}
	for _, c := range []struct {
		call tea.Invocation
		want any
	}{
		{tea.Invocation{Params: given, Key: "a-1", Attempt: 2}, given},
		{tea.Invocation{Params: given, Roots: roots}, rendered},
		{tea.Invocation{Params: given, Key: "a-2", Roots: roots, Output: "{{ result }}"}, output},
	} {
		c.call.Action = "text.echo"
		got, err := s.call(ctx, "probe.invoke_as", invokeAsParams(c.call), host)
		if err != nil {
			return err
		}
		invoked := host.Invocations()
		last := invoked[len(invoked)-1]
		if last.Key != c.call.Key || last.Attempt != c.call.Attempt {
			return fmt.Errorf("key and attempt arrived as %q and %d", last.Key, last.Attempt)
		}
		if err := equal(map[string]any{"result": c.want}, got); err != nil {
			return err
		}
	}
	return nil
}

func checkInvokeFails(ctx context.Context, s *Subject) error {
	host := &Host{Actions: map[string]func(context.Context, any) (any, error){
		"text.fail": func(context.Context, any) (any, error) {
			return nil, &tea.Error{Type: "of_my_own", Message: "no", Source: "there", Details: map[string]any{"a": int64(1)}}
		},
	}}
	_, err := s.call(ctx, "probe.invoke", map[string]any{"action": "text.fail", "params": map[string]any{}}, host)
	var got *tea.Error
	if !errors.As(err, &got) {
		return fmt.Errorf("%v is not an action's error", err)
	}
	if !value.Equal(map[string]any{"a": int64(1)}, any(got.Details)) || got.Type != "of_my_own" || got.Message != "no" || got.Source != "there" {
		return fmt.Errorf("the error arrived as %+v", got)
	}
	_, err = s.call(ctx, "probe.invoke", map[string]any{"action": "text.never", "params": map[string]any{}}, host)
	return failsWith(err, tea.NotFound)
}

func checkDescribe(ctx context.Context, s *Subject) error {
	host := &Host{Infos: map[string]tea.ActionInfo{
		"text.upper": {Name: "text.upper", Summary: "Makes it loud.", Params: schema.Of[textResult](), Idempotent: true},
	}}
	got, err := s.call(ctx, "probe.describe", map[string]any{"action": "text.upper"}, host)
	if err != nil {
		return err
	}
	if err := equal(map[string]any{
		"name": "text.upper", "summary": "Makes it loud.", "idempotent": true,
		"params": map[string]any{
			"type": "object", "required": []any{"text"}, "additionalProperties": false,
			"properties": map[string]any{"text": map[string]any{"type": "string"}},
		},
	}, got); err != nil {
		return err
	}
	_, err = s.call(ctx, "probe.describe", map[string]any{"action": "text.never"}, host)
	return failsWith(err, tea.NotFound)
}

// checkNotes reads a note that does not exist, stores it and reads it again; a note of
// null exists.
func checkNotes(ctx context.Context, s *Subject) error {
	host := &Host{Notes: map[string]any{"null": nil}}
	step := func(key string, note any, want map[string]any) error {
		got, err := s.call(ctx, "probe.note", map[string]any{"key": key, "note": note}, host)
		if err != nil {
			return err
		}
		return equal(want, got)
	}
	note := map[string]any{"n": int64(9007199254740993), "whole": 2.0, "none": nil}
	return errors.Join(
		step("a", note, map[string]any{"found": false, "note": nil}),
		step("a", "second", map[string]any{"found": true, "note": note}),
		step("null", nil, map[string]any{"found": true, "note": nil}),
		equal(map[string]any{"a": "second", "null": nil}, any(host.Recorded().Notes)),
	)
}

// checkUsage reports twice and reaches the budget with the second report.
func checkUsage(ctx context.Context, s *Subject) error {
	host := &Host{Budget: 1000}
	report := func(tokens int64, want string) error {
		got, err := s.call(ctx, "probe.usage", map[string]any{"tokens": tokens, "usd": 0.25}, host)
		if err != nil {
			return err
		}
		return equal(map[string]any{"error_type": want}, got)
	}
	if err := errors.Join(report(400, ""), report(600, string(tea.BudgetExceeded))); err != nil {
		return err
	}
	want := []tea.Usage{{Tokens: 400, USD: 0.25}, {Tokens: 600, USD: 0.25}}
	return same("the usage", want, host.Recorded().Usage)
}
