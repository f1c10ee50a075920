package mcp_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("good"), "max_concurrent_calls", 3))
	var running sync.WaitGroup
	sums, errs := make([]any, 60), make([]error, 60)
	for i := range sums {
		running.Go(func() {
			var r map[string]any
			if r, errs[i] = c.call(t.Context(), "mcp.s_add", map[string]any{"a": i, "b": 1000}); errs[i] == nil {
				sums[i] = r["data"]
			}
		})
	}
	running.Wait()
	for i := range sums {
		if want := map[string]any{"sum": int64(1000 + i)}; errs[i] != nil || !cmp.Equal(sums[i], want) {
			t.Errorf("call %d: %v, %v", i, sums[i], errs[i])
		}
	}
}

// What a server reports before the result of a call reaches that call, also if the
// call has ended by then and others run.
func TestReportsReachTheirCall(t *testing.T) {
	t.Parallel()
	site := serveHTTP(t, nil)
	for name, server := range map[string]map[string]any{"process": with(testServer("good"), "max_concurrent_calls", 5), "http": with(map[string]any{"url": site.URL})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open(t, server)
			c.must(t, "mcp.s_add", map[string]any{"a": 1})
			var running sync.WaitGroup
			for call := range 8 { // 48 reports: 50 a second are passed on
				running.Go(func() {
					host := &teatest.Host{}
					_, err := c.Invoke(t.Context(), &tea.Request{Action: "mcp.s_report", Params: tea.ValuePayload(map[string]any{"call": call}), Host: host, Call: tea.Call{Attempt: 1}})
					if err != nil {
						t.Error(err)
					}
					var want []string
					for i := range 5 {
						want = append(want, fmt.Sprintf("%d: %d", call, i))
					}
					var got []string
					for _, p := range host.Recorded().Progress {
						got = append(got, p.Message)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("progress of call %d (-want +got):\n%s", call, diff)
					}
					if logs := host.Recorded().Logs; len(logs) != 1 || logs[0].Message != fmt.Sprintf("%d ends", call) {
						t.Errorf("logs of call %d: %v", call, logs)
					}
				})
			}
			running.Wait()
		})
	}
}

// A call that waits for its turn ends with its context.
func TestCanceledWhileWaiting(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("good"), "max_concurrent_calls", 1))
	c.must(t, "mcp.s_add", map[string]any{"a": 1})
	first, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	file := filepath.Join(t.TempDir(), "never")
	go func() {
		_, err := c.call(first, "mcp.s_progress", map[string]any{"file": file})
		ended <- err
	}()
	for len(c.host.Recorded().Progress) == 0 { // the first call runs
		select {
		case err := <-ended:
			t.Fatalf("the first call ended: %v", err)
		default:
		}
	}
	second, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.call(second, "mcp.s_add", map[string]any{"a": 1}); errorType(err) != tea.Canceled {
		t.Errorf("the second call: %v", err)
	}
	stop()
	if err := <-ended; errorType(err) != tea.Canceled {
		t.Errorf("the first call: %v", err)
	}
}

// An older server does not say to which call a question belongs. It must not
// reach the person of another run.
func TestQuestionOfOneOfSeveralCalls(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("raw", "ask")))
	asked := make(chan struct{}, 1)
	answer := make(chan struct{})
	c.host.Actions = map[string]func(context.Context, any) (any, error){"human.ask": func(context.Context, any) (any, error) {
		asked <- struct{}{}
		<-answer
		return map[string]any{"answer": map[string]any{"branch": "main"}}, nil
	}}
	var texts [2]any
	var errs [2]error
	call := func(i int) {
		var r map[string]any
		if r, errs[i] = c.call(t.Context(), "mcp.s_echo", nil); errs[i] == nil {
			texts[i] = r["text"]
		}
	}
	var running sync.WaitGroup
	running.Go(func() { call(0) })
	<-asked // the first question belongs to the only call
	second := make(chan struct{})
	go func() {
		defer close(second)
		call(1)
	}()
	<-second // its question was refused
	close(answer)
	running.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if text, _ := texts[1].(string); !cmp.Equal(len(c.host.Recorded().Invoked), 1) || text == "" {
		t.Errorf("the second call returned %q; %d questions", text, len(c.host.Recorded().Invoked))
	}
}

func TestNothingIsLeftOfHTTP(t *testing.T) { //nolint:paralleltest // it counts goroutines
	s := serveHTTP(t, nil)
	before := goleak.IgnoreCurrent()
	c := open(t, with(map[string]any{"url": s.URL}))
	c.must(t, "mcp.s_add", map[string]any{"a": 1})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	s.CloseClientConnections()
	s.Close()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}
