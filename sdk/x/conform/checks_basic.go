package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// basicChecks apply to every plugin, and to the values that it exchanges.
func basicChecks() []Check {
	return []Check{
		{Name: "manifest", Remedy: "return a valid manifest, the same one each time", Run: checkManifest},
		{Name: "unknown action", Remedy: "answer with an error of type not_found", Run: checkUnknownAction},
		{Name: "wrong parameters", Remedy: "check the parameters against the action's schema before it does anything, and answer with an error of type validation_error", Run: checkWrongParams},
		{Name: "values", Remedy: "keep integers, floats, nulls and texts as they are in the JSON; do not convert numbers to floats", Needs: []string{"probe.echo"}, Run: checkValues},
		{Name: "settings", Remedy: "keep the settings of different instances separate", Needs: []string{"probe.settings"}, Run: checkSettings},
		{Name: "refused settings", Remedy: "return the error in the answer of Configure", Needs: []string{"probe.settings"}, Run: checkRefusedSettings},
		{Name: "caller", Remedy: "pass the fields of InvokeRequest to the action", Needs: []string{"probe.call"}, Run: checkCaller},
	}
}

func checkManifest(ctx context.Context, s *Subject) error {
	if err := s.Manifest.Check(); err != nil {
		return err
	}
	again, err := s.Target.Describe(ctx)
	if err != nil {
		return err
	}
	return SameManifest(s.Manifest, again)
}

func checkUnknownAction(ctx context.Context, s *Subject) error {
	_, err := s.call(ctx, s.Manifest.Name+".no_such_action", map[string]any{}, nil)
	return failsWith(err, tea.NotFound)
}

// checkWrongParams calls every action whose schema refuses the parameters, so that none of
// them begins its work.
func checkWrongParams(ctx context.Context, s *Subject) error {
	for _, action := range s.Manifest.Actions {
		if action.Params == nil {
			continue
		}
		if len(action.Params.Required) > 0 {
			_, err := s.call(ctx, action.Name, map[string]any{}, nil)
			if err := failsWith(err, tea.ValidationError); err != nil {
				return fmt.Errorf("%s without its parameters: %w", action.Name, err)
			}
		}
		if more := action.Params.AdditionalProperties; more != nil && more.Never {
			_, err := s.call(ctx, action.Name, map[string]any{"no_such_parameter": true}, nil)
			if err := failsWith(err, tea.ValidationError); err != nil {
				return fmt.Errorf("%s with an unknown parameter: %w", action.Name, err)
			}
		}
	}
	return nil
}

// checkValues sends values that other encodings lose.
func checkValues(ctx context.Context, s *Subject) error {
	for _, text := range []string{
		`{}`,
		`{"null":null,"zero":0,"empty":"","false":false,"list":[],"object":{}}`,
		`{"max":9223372036854775807,"min":-9223372036854775808,"beyond":123456789012345678901234567890,"exact":9007199254740993}`,
		`{"float":0.1,"whole":3.0,"small":5e-324,"large":1.7976931348623157e308}`,
		`{"text":"Grüße, 世界 🎉 \u0000 \u2028 \"\\/ e\u0301","ключ":"значение"}`,
		`{"deep":[[[[{"a":[1,"2",null,true,{"b":[]}]}]]]]}`,
	} {
		want, err := value.Decode([]byte(text))
		if err != nil {
			return err
		}
		got, err := s.call(ctx, "probe.echo", want, nil)
		if err != nil {
			return fmt.Errorf("echo %s: %w", text, err)
		}
		if err := equal(want, got); err != nil {
			return fmt.Errorf("echo %s: %w", text, err)
		}
	}
	return nil
}

// checkSettings opens two different instances: each gets its own settings, and only the
// keys that the manifest declares.
func checkSettings(ctx context.Context, s *Subject) error {
	for _, text := range []string{`{"n": 9007199254740993, "none": null}`, `"two"`} {
		inst, err := s.Target.Open(ctx, tea.Settings{"probe": json.RawMessage(text), "other": json.RawMessage(`"not for you"`)})
		if err != nil {
			return err
		}
		got, err := invoke(ctx, inst, &tea.Request{Action: "probe.settings", Params: tea.RawPayload([]byte(`{}`))})
		if err != nil {
			return err
		}
		own, err := value.Decode([]byte(text))
		if err != nil {
			return err
		}
		if err := errors.Join(equal(map[string]any{"probe": own}, got), inst.Close()); err != nil {
			return err
		}
	}
	return nil
}

func checkRefusedSettings(ctx context.Context, s *Subject) error {
	inst, err := s.Target.Open(ctx, tea.Settings{"probe": json.RawMessage(`"refuse"`)})
	if err == nil {
		return errors.Join(errors.New("the plugin accepted the settings"), inst.Close())
	}
	return failsWith(err, tea.ValidationError)
}

func checkCaller(ctx context.Context, s *Subject) error {
	call := tea.Call{
		RunID: "run-1", Node: "each[3]/hölen", Attempt: 2, IdempotencyKey: "key-1",
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Tracestate: "a=1,b=2",
	}
	got, err := invoke(ctx, s.Instance, &tea.Request{Action: "probe.call", Params: tea.RawPayload([]byte(`{}`)), Call: call})
	if err != nil {
		return err
	}
	return equal(map[string]any{
		"run_id": call.RunID, "node": call.Node, "attempt": int64(2), "idempotency_key": call.IdempotencyKey,
		"traceparent": call.Traceparent, "tracestate": call.Tracestate,
	}, got)
}
