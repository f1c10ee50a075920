package subproc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/conform"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// wantError fails the test unless err is an action's error of the type whose
// text holds all words.
func wantError(t *testing.T, err error, want tea.ErrorType, words ...string) *tea.Error {
	t.Helper()
	var e *tea.Error
	if !errors.As(err, &e) || e.Type != want {
		t.Fatalf("got %v, want an error of type %s", err, want)
	}
	for _, word := range words {
		if !strings.Contains(e.Error(), word) {
			t.Errorf("the error %q does not mention %q", e, word)
		}
	}
	return e
}

// target lets the protocol's own suite run through the supervisor.
type target struct {
	t   *testing.T
	set *Plugins
}

func (s target) Describe(context.Context) (tea.Manifest, error) {
	return s.set.Bundles()[0].Manifest, nil
}

func (s target) Open(ctx context.Context, settings tea.Settings) (teatest.Instance, error) {
	inst, err := s.set.open("probe", settings)
	if err != nil {
		return nil, err
	}
	// The supervisor opens at the first call; the suite wants to know now.
	if _, err := call(ctx, inst, "probe.waiting", nil); err != nil {
		return nil, err
	}
	return inst, nil
}

func TestSupervisedPluginConforms(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	set, _ := discover(t, Options{Dirs: []string{install(t, "probe")}})
	err := conform.Suite{}.Run(t.Context(), target{t, set}, func(r conform.Result) {
		if r.Status == conform.Failed {
			t.Errorf("%s: %s", r.Check, r.Detail)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCrashIsATypedError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action string
		words  []string
		detail string
		want   any
	}{
		{"crash.exit", []string{"exit status 7", "out of cheese"}, "exit_code", int64(7)},
		{"crash.kill", []string{"signal: killed"}, "signal", "killed"},
		{"crash.panic", []string{"panic: deep inside"}, "exit_code", int64(2)},
	} {
		t.Run(c.action, func(t *testing.T) {
			t.Parallel()
			inst := open(t, "crash")
			_, err := call(t.Context(), inst, c.action, nil)
			e := wantError(t, err, tea.PluginCrashed, append(c.words, c.action)...)
			if diff := cmp.Diff(c.want, e.Details[c.detail]); diff != "" {
				t.Error(diff)
			}
			if _, err := call(t.Context(), inst, "crash.not", nil); err != nil {
				t.Errorf("the plugin was not restarted: %v", err)
			}
		})
	}
}

func TestBreakerOpensAfterRepeatedCrashes(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it runs into time limits")
	inst := open(t, "crash")
	for range crashLimit {
		_, err := call(t.Context(), inst, "crash.exit", nil)
		wantError(t, err, tea.PluginCrashed)
	}
	_, err := call(t.Context(), inst, "crash.not", nil)
	if e := wantError(t, err, tea.CircuitOpen, "crash"); e.RetryAfter <= 0 {
		t.Error("the error does not say how long to wait")
	}
}

// tokenHost hands on every token that arrives.
type tokenHost struct {
	teatest.Host
	tokens chan string
}

func (h *tokenHost) Token(_ context.Context, text string) { h.tokens <- text }

// endlessCalls begins calls that never end and returns their errors.
func endlessCalls(t *testing.T, inst *instance, calls int) <-chan error {
	t.Helper()
	host := &tokenHost{tokens: make(chan string)}
	ended := make(chan error, calls)
	for range calls {
		go func() {
			_, err := inst.Invoke(t.Context(), &tea.Request{Action: "crash.stubborn", Host: host})
			ended <- err
		}()
	}
	for range calls {
		<-host.tokens
	}
	return ended
}

func TestLogNamesTheActionThatAKilledPluginRan(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	set, problems := discover(t, Options{Dirs: []string{install(t, "crash")}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	inst := openIn(t, set, "crash")
	if _, err := call(t.Context(), inst, "crash.not", nil); err != nil {
		t.Fatal(err)
	}
	ended := endlessCalls(t, inst, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := set.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	wantError(t, <-ended, tea.Canceled)
	wantError(t, <-ended, tea.Canceled)
	if want := `error="no answer from crash.stubborn"`; !strings.Contains(log.String(), want) {
		t.Errorf("the log does not say %s:\n%s", want, &log)
	}
}

func TestCrashEndsAllCallsInFlight(t *testing.T) {
	t.Parallel()
	inst := open(t, "crash")
	const n = 20
	ended := endlessCalls(t, inst, n)
	_, err := call(t.Context(), inst, "crash.kill", nil)
	wantError(t, err, tea.PluginCrashed)
	for range n {
		wantError(t, <-ended, tea.PluginCrashed)
	}
}

func TestFloodedOutputDoesNotAffectCalls(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	inst := open(t, "crash")
	if _, err := call(t.Context(), inst, "crash.flood", map[string]any{"bytes": 50 << 20}); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t.Context(), inst, "crash.not", nil); err != nil {
		t.Fatal(err)
	}
}

func TestFirstCallsStartOneProcess(t *testing.T) {
	t.Parallel()
	dir := install(t, "slowstart")
	set, problems := discover(t, Options{Dirs: []string{dir}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	inst := openIn(t, set, "slowstart")
	noted := filepath.Join(dir, startsFile)
	if err := os.Remove(noted); err != nil {
		t.Fatal("the plugin was not asked for its manifest:", err)
	}
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if _, err := call(t.Context(), inst, "slowstart.not", nil); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := starts(t, dir); n != 1 {
		t.Errorf("%d processes were started, want 1", n)
	}
}

func TestThousandConcurrentCalls(t *testing.T) {
	t.Parallel()
	inst := open(t, "probe")
	var calls sync.WaitGroup
	for i := range 1000 {
		calls.Go(func() {
			want := map[string]any{"i": int64(i)}
			got, err := call(t.Context(), inst, "probe.echo", want)
			if err != nil {
				t.Error(err)
			} else if diff := cmp.Diff(any(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
	calls.Wait()
}

func TestEnvironmentIsCleanAndStdinEmpty(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "not for plugins")
	t.Setenv("LANG", "de_DE.UTF-8")
	set, _ := discover(t, Options{Dirs: []string{install(t, "crash")}, Env: []string{"EXTRA=yes"}})
	got, err := call(t.Context(), openIn(t, set, "crash"), "crash.env", nil)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, entry := range got.(map[string]any)["env"].([]any) {
		name, v, _ := strings.Cut(entry.(string), "=")
		env[name] = v
	}
	if _, leaked := env["AWS_SECRET_ACCESS_KEY"]; leaked {
		t.Error("the plugin sees the host's secrets")
	}
	if env["LANG"] != "de_DE.UTF-8" || env["EXTRA"] != "yes" {
		t.Errorf("LANG=%q EXTRA=%q, want both passed on", env["LANG"], env["EXTRA"])
	}
	if stdin := got.(map[string]any)["stdin"]; stdin != "0 EOF" {
		t.Errorf("stdin gave %v, want its end", stdin)
	}
}

func TestCallsAfterCloseAreCanceled(t *testing.T) {
	t.Parallel()
	set, _ := discover(t, Options{Dirs: []string{install(t, "probe")}})
	inst := openIn(t, set, "probe")
	if _, err := call(t.Context(), inst, "probe.echo", nil); err != nil {
		t.Fatal(err)
	}
	if err := set.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := call(t.Context(), inst, "probe.echo", nil)
	wantError(t, err, tea.Canceled)
}

func TestResultsUpTo64MiB(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	inst := open(t, "probe")
	big := func(size int) (*tea.Response, error) {
		params := tea.ValuePayload(map[string]any{"bytes": int64(size)})
		return inst.Invoke(t.Context(), &tea.Request{Action: "probe.big", Params: params, Host: &teatest.Host{}})
	}
	resp, err := big(tea.MaxPayload)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := resp.Result.JSON(); err != nil || len(raw) != tea.MaxPayload {
		t.Errorf("got %d bytes, %v", len(raw), err)
	}
	_, err = big(tea.MaxPayload + 1)
	atFault(t, err, tea.ValidationError, "64 MiB")
}
