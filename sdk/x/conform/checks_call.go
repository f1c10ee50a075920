package conform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// callChecks are about the end of a call and the events before it.
func callChecks() []Check {
	return []Check{
		{Name: "error", Remedy: "return every field of the error, its details included", Needs: []string{"probe.fail"}, Run: checkError},
		{Name: "panic", Remedy: "answer an exception in an action with an error of type internal_error that contains its message", Needs: []string{"probe.panic", "probe.echo"}, Run: checkPanic},
		{Name: "cancellation", Remedy: "end the action when gRPC cancels the call", Needs: []string{"probe.wait", "probe.waiting"}, Run: checkCancellation},
		{Name: "deadline", Remedy: "end the action when the call's deadline has passed", Needs: []string{"probe.wait", "probe.waiting"}, Run: checkDeadline},
		{Name: "stream", Remedy: "send tokens, progress and logs in order while the action runs, the result last", Needs: []string{"probe.stream"}, Run: checkStream},
		{Name: "concurrent failures", Remedy: "run calls concurrently, without shared mutable state", Run: checkConcurrentFailures},
		{Name: "concurrent calls", Remedy: "run calls concurrently, without shared mutable state", Needs: []string{"probe.echo"}, Run: checkConcurrent},
	}
}

func checkError(ctx context.Context, s *Subject) error {
	details := map[string]any{"status": int64(429), "big": int64(9007199254740993), "none": nil, "list": []any{"ü"}}
	_, err := s.call(ctx, "probe.fail", map[string]any{
		"type": "rate_limited", "message": "später \"wieder\"", "retryable": true, "retry_after_ms": 1500, "source": "api.example", "details": details,
	}, nil)
	var got *tea.Error
	if !errors.As(err, &got) {
		return fmt.Errorf("%v is not an action's error", err)
	}
	if got.Type != tea.RateLimited || got.Message != "später \"wieder\"" || !got.Retryable || got.RetryAfter != 1500*time.Millisecond || got.Source != "api.example" {
		return fmt.Errorf("the error arrived as %+v", got)
	}
	return equal(details, Details(got))
}

// Details returns the details of an error in the value model; a linked bundle may have
// left Go values in them.
func Details(e *tea.Error) any {
	v, err := tea.ValuePayload(e.Details).Value()
	if err != nil {
		return err.Error()
	}
	return v
}

func checkPanic(ctx context.Context, s *Subject) error {
	_, err := s.call(ctx, "probe.panic", map[string]any{}, nil)
	if err := failsWith(err, tea.InternalError); err != nil {
		return err
	}
	if !strings.Contains(err.Error(), "as asked") {
		return fmt.Errorf("the error %q does not contain the message of the panic", err)
	}
	if _, err = s.call(ctx, "probe.echo", map[string]any{}, nil); err != nil {
		return fmt.Errorf("the plugin did not survive: %w", err)
	}
	return nil
}

// signalHost signals the arrival of the first token.
type signalHost struct {
	Host
	once  sync.Once
	begun chan struct{}
}

func (h *signalHost) Token(ctx context.Context, text string) {
	h.Host.Token(ctx, text)
	h.once.Do(func() { close(h.begun) })
}

// startWaiting calls probe.wait and, once the call has begun, returns a channel for its
// end.
func startWaiting(ctx context.Context, s *Subject) (<-chan error, error) {
	host := &signalHost{begun: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		_, err := s.call(ctx, "probe.wait", map[string]any{}, host)
		ended <- err
	}()
	select {
	case <-host.begun:
		return ended, nil
	case err := <-ended:
		return nil, fmt.Errorf("the call ended before it began to wait: %w", err)
	case <-time.After(10 * time.Second):
		return nil, errors.New("no token within 10 s: tokens must arrive while the call runs")
	}
}

func checkCancellation(ctx context.Context, s *Subject) error {
	callCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended, err := startWaiting(callCtx, s)
	if err != nil {
		return err
	}
	cancel()
	if err := failsWith(<-ended, tea.Canceled); err != nil {
		return err
	}
	return handlersEnded(ctx, s)
}

func checkDeadline(ctx context.Context, s *Subject) error {
	callCtx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err := s.call(callCtx, "probe.wait", map[string]any{}, nil)
	if err := failsWith(err, tea.Timeout); err != nil {
		return err
	}
	return handlersEnded(ctx, s)
}

// handlersEnded returns nil when every handler of probe.wait has ended, which must happen
// soon after the end of its context.
func handlersEnded(ctx context.Context, s *Subject) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		got, err := s.call(ctx, "probe.waiting", map[string]any{}, nil)
		if err != nil {
			return fmt.Errorf("the handler did not notice the end of its context within 5 s: %w", err)
		}
		if equal(map[string]any{"count": int64(0)}, got) == nil {
			return nil
		}
	}
}

// checkStream requires every token, report and record, in order.
func checkStream(ctx context.Context, s *Subject) error {
	const n = 100
	host := &Host{}
	got, err := s.call(ctx, "probe.stream", map[string]any{"tokens": n}, host)
	if err != nil {
		return err
	}
	var want Record
	want.Notes = map[string]any{}
	for i := range n {
		want.Tokens = append(want.Tokens, fmt.Sprint(i))
		want.Progress = append(want.Progress, Progress{Fraction: float64(i+1) / n, Message: fmt.Sprint("token ", i)})
	}
	want.Logs = []Log{{Level: slog.LevelWarn, Message: "streamed", Fields: map[string]any{"tokens": int64(n), "none": nil}}}
	if err := same("the stream", want, host.Recorded()); err != nil {
		return err
	}
	return equal(map[string]any{"count": int64(n)}, got)
}

func checkConcurrent(ctx context.Context, s *Subject) error {
	return together(200, func(i int) error {
		want := map[string]any{"i": int64(i), "text": strings.Repeat("y", i)}
		got, err := s.call(ctx, "probe.echo", want, nil)
		if err != nil {
			return err
		}
		return equal(want, got)
	})
}

// checkConcurrentFailures makes calls that every plugin can answer.
func checkConcurrentFailures(ctx context.Context, s *Subject) error {
	return together(50, func(int) error { return checkUnknownAction(ctx, s) })
}

// together runs n calls concurrently and returns the first error.
func together(n int, call func(i int) error) error {
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- call(i) }()
	}
	var first error
	for range n {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}
