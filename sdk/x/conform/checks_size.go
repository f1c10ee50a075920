package conform

import (
	"context"
	"fmt"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

// sizeChecks are about large results and parameters.
func sizeChecks() []Check {
	return []Check{
		{Name: "result of 5 MiB", Remedy: "raise the message limits of gRPC to 65 MiB in both directions", Needs: []string{"probe.big"}, Run: checkBigResult(5 << 20)},
		{Name: "parameters of 5 MiB", Remedy: "raise the message limits of gRPC to 65 MiB in both directions", Needs: []string{"probe.echo"}, Run: checkBigParams},
		{Name: "result of just 64 MiB", Remedy: "raise the message limits of gRPC to 65 MiB in both directions", Needs: []string{"probe.big"}, Remote: true, Run: checkBigResult(tea.MaxPayload)},
		{Name: "result beyond 64 MiB", Remedy: "answer a result of more than 64 MiB with an error of type validation_error that mentions 64 MiB", Needs: []string{"probe.big", "probe.echo"}, Remote: true, Run: checkTooBig},
	}
}

func checkBigResult(size int) func(ctx context.Context, s *Subject) error {
	return func(ctx context.Context, s *Subject) error {
		resp, err := s.Instance.Invoke(ctx, bigRequest(size))
		if err != nil {
			return err
		}
		raw, err := resp.Result.JSON()
		if err != nil {
			return err
		}
		if want := `{"text":"` + strings.Repeat("x", size-len(`{"text":""}`)) + `"}`; string(raw) != want {
			return fmt.Errorf("the result has %d bytes, not the %d that were requested", len(raw), size)
		}
		return nil
	}
}

func bigRequest(size int) *tea.Request {
	return &tea.Request{Action: "probe.big", Params: tea.ValuePayload(map[string]any{"bytes": int64(size)}), Host: &Host{}}
}

func checkBigParams(ctx context.Context, s *Subject) error {
	want := map[string]any{"text": strings.Repeat("ü", 5<<19)}
	got, err := s.call(ctx, "probe.echo", want, nil)
	if err != nil {
		return err
	}
	if fields, ok := got.(map[string]any); !ok || fields["text"] != want["text"] {
		return fmt.Errorf("the result differs from the parameters")
	}
	return nil
}

func checkTooBig(ctx context.Context, s *Subject) error {
	for _, size := range []int{tea.MaxPayload + 1, tea.MaxPayload + 4<<20} {
		_, err := s.Instance.Invoke(ctx, bigRequest(size))
		if err := failsWith(err, tea.ValidationError); err != nil {
			return err
		}
		if !strings.Contains(err.Error(), "64 MiB") {
			return fmt.Errorf("the error %q does not name the limit", err)
		}
	}
	if _, err := s.call(ctx, "probe.echo", map[string]any{}, nil); err != nil {
		return fmt.Errorf("the connection did not survive: %w", err)
	}
	return nil
}
