package subproc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
	"github.com/the-edge-agent/tea/sdk/x/proctest"
)

// atFault fails the test unless the error says that the plugin is at fault, is
// of the type, and contains all words.
func atFault(t *testing.T, err error, want tea.ErrorType, words ...string) *tea.Error {
	t.Helper()
	e := wantError(t, err, want, words...)
	if !errors.As(err, new(interface{ PluginFault() })) {
		t.Errorf("the plugin is not at fault: %v", err)
	}
	return e
}

// within calls an action with a deadline.
func within(t *testing.T, d time.Duration, inst *instance, action string) error {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, tea.Errorf(tea.Timeout, "too slow"))
	defer cancel()
	_, err := call(ctx, inst, action, nil)
	return err
}

// overdue calls an action that never ends with a deadline. On a busy machine the deadline
// can pass before the plugin has the call: then it gets more time.
func overdue(t *testing.T, inst *instance, action string) error {
	t.Helper()
	for d := 50 * time.Millisecond; ; d *= 2 {
		err := within(t, d, inst, action)
		if errors.As(err, new(interface{ PluginFault() })) || d > time.Minute {
			return err
		}
	}
}

func pidOf(t *testing.T, inst *instance) int64 {
	t.Helper()
	got, err := call(t.Context(), inst, "crash.not", nil)
	if err != nil {
		t.Fatal(err)
	}
	return got.(map[string]any)["pid"].(int64)
}

func TestCallThatExceedsItsDeadlineEndsTheProcess(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it runs into time limits")
	inst := open(t, "crash")
	pid := pidOf(t, inst)
	atFault(t, overdue(t, inst, "crash.stubborn"), tea.Timeout, "too slow", "did not end the call within 2s", "is killed")
	wantGone(t, int(pid))
	if now := pidOf(t, inst); now == pid {
		t.Error("the plugin was not restarted")
	}
}

func TestOtherCallsContinueBesideAHangingCall(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it runs into time limits")
	inst := open(t, "crash")
	pid := pidOf(t, inst)
	host := &tokenHost{tokens: make(chan string)}
	ended := make(chan error)
	go func() {
		_, err := inst.Invoke(t.Context(), &tea.Request{Action: "crash.patient", Host: host})
		ended <- err
	}()
	<-host.tokens
	atFault(t, overdue(t, inst, "crash.stubborn"), tea.Timeout)
	if now := pidOf(t, inst); now == pid {
		t.Error("a new call begins on the process that hangs")
	}
	if proctest.Gone(int(pid)) {
		t.Error("the process was killed during another call")
	}
	<-host.tokens // it ends after the second one
	if err := <-ended; err != nil {
		t.Errorf("the other call failed: %v", err)
	}
	awaitGone(t, time.Minute, int(pid))
}

func TestCallThatEndsAtItsDeadlineKeepsTheProcess(t *testing.T) {
	t.Parallel()
	inst := open(t, "crash")
	pid := pidOf(t, inst)
	err := within(t, 100*time.Millisecond, inst, "crash.obey")
	wantError(t, err, tea.Timeout)
	if errors.As(err, new(interface{ PluginFault() })) {
		t.Errorf("the plugin is at fault: %v", err)
	}
	if now := pidOf(t, inst); now != pid {
		t.Error("the plugin was restarted")
	}
}

func TestCanceledCallThatContinuesEndsTheProcess(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it runs into time limits")
	inst := open(t, "crash")
	pid := pidOf(t, inst)
	ctx, cancel := context.WithCancel(t.Context())
	host := &tokenHost{tokens: make(chan string)}
	ended := make(chan error)
	go func() {
		_, err := inst.Invoke(ctx, &tea.Request{Action: "crash.stubborn", Host: host})
		ended <- err
	}()
	<-host.tokens
	cancel()
	wantError(t, <-ended, tea.Canceled)
	awaitGone(t, time.Minute, int(pid))
}

func TestStoppedProcessIsReplaced(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it runs into time limits")
	o := Options{Dirs: []string{install(t, "crash")}, times: times{configure: time.Minute, health: time.Second}}
	set, _ := discover(t, o)
	inst := openIn(t, set, "crash")
	_, err := call(t.Context(), inst, "crash.stop", nil)
	atFault(t, err, tea.PluginCrashed, "was stopped (SIGSTOP)", "crash.stop")
	pidOf(t, inst)
}

func TestSettingsThatAreNeverAcceptedEndTheProcess(t *testing.T) {
	t.Parallel()
	o := Options{Dirs: []string{install(t, "numb")}, times: times{configure: 200 * time.Millisecond, health: time.Second}}
	set, problems := discover(t, o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	_, err := call(t.Context(), openIn(t, set, "numb"), "crash.not", nil)
	atFault(t, err, tea.Timeout, "plugin numb did not accept its settings within 200ms", "was killed")
}

func TestPanicsAndGoexitAreThePluginsFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action string
		want   tea.ErrorType
		words  []string
	}{
		{"crash.oops", tea.InternalError, []string{"panic in crash.oops: oops", "fakes_test.go"}},
		{"crash.goexit", tea.PluginCrashed, []string{"fatal error: crash.goexit called runtime.Goexit"}},
		{"crash.panic", tea.PluginCrashed, []string{"panic: deep inside"}},
		{"crash.nil", tea.PluginCrashed, []string{"panic: runtime error: invalid memory address or nil pointer dereference", "fakes_test.go"}},
	} {
		t.Run(c.action, func(t *testing.T) {
			t.Parallel()
			inst := open(t, "crash")
			_, err := call(t.Context(), inst, c.action, nil)
			e := atFault(t, err, c.want, c.words...)
			if words, _ := e.Details["last_words"].(string); strings.Contains(words, "rax ") {
				t.Errorf("the last words are registers:\n%s", words)
			}
			pidOf(t, inst)
		})
	}
}
