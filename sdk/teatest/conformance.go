package teatest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
	"github.com/the-edge-agent/tea/sdk/x/conform"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// Conformance runs the suite of the protocol against the bundle twice, linked into the
// test and as a separate process, and requires the same manifest from both. Each sample
// is called in both ways and must return the same result, error and callbacks. The
// suite's own calls use the settings of the first sample.
//
// The process is the test binary, started again to run only the calling test: what the
// test does before Conformance is also done there. Conformance does not return there.
func Conformance(t *testing.T, bundle tea.Bundle, samples ...Request) {
	t.Helper()
	if os.Getenv(wire.CookieKey) == wire.CookieValue {
		serve.Main(bundle)
	}
	var own tea.Settings
	if len(samples) > 0 {
		own = settings(t, samples[0].Settings)
	}
	process := startSelf(t)
	if err := conform.SameManifest(bundle.Manifest(), process.Manifest()); err != nil {
		t.Errorf("linked in and out of process: %v", err)
	}
	// The test binary, started manually, runs its tests.
	suite := conform.Suite{Settings: own, Match: func(check string) bool { return check != conform.ByHand }}
	t.Run("linked", func(t *testing.T) { runSuite(t, suite, Linked(bundle)) })
	t.Run("process", func(t *testing.T) { runSuite(t, suite, process) })
	t.Run("samples", func(t *testing.T) {
		for _, sample := range samples {
			t.Run(sample.Action, func(t *testing.T) { sameAnswer(t, Linked(bundle), process, sample) })
		}
	})
}

// Binary runs the suite against a built plugin in any language. args are the
// arguments of the plugin. Settings are empty.
func Binary(t *testing.T, path string, args ...string) {
	t.Helper()
	runSuite(t, conform.Suite{}, start(t, nil, path, args...))
}

// startSelf runs the calling test of this binary as a plugin.
func startSelf(t *testing.T) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(t.Name(), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	// The process does not clean up after the test that it starts.
	temporary := t.TempDir()
	return start(t, []string{"TMPDIR=" + temporary, "TMP=" + temporary}, self, "-test.run="+strings.Join(parts, "/"))
}

func start(t *testing.T, env []string, path string, args ...string) *Process {
	t.Helper()
	// The context of the test ends before its cleanup, which ends the process.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, args...)
	cmd.Env = append(os.Environ(), env...)
	process, err := Start(t.Context(), cmd, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Close)
	return process
}

func runSuite(t *testing.T, suite conform.Suite, target Target) {
	t.Helper()
	err := suite.Run(t.Context(), target, func(r conform.Result) {
		switch r.Status {
		case conform.Skipped:
		case conform.Passed:
			t.Run(r.Check, func(*testing.T) {})
		case conform.Failed:
			t.Run(r.Check, func(t *testing.T) { t.Errorf("%s\n%s", r.Detail, r.Remedy) })
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sameAnswer makes one call on both targets and compares everything that is
// observable.
func sameAnswer(t *testing.T, a, b Target, sample Request) {
	t.Helper()
	first, second := answerOf(t, a, sample), answerOf(t, b, sample)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("linked in (-) and out of process (+) differ:\n%s", diff)
	}
}

// answer is everything that is observable of a call.
type answer struct {
	Result   any
	Error    string
	Details  any
	Recorded Record
}

func answerOf(t *testing.T, target Target, sample Request) answer {
	t.Helper()
	host := &Host{}
	if sample.Host != nil {
		host.Actions, host.Infos, host.Notes = sample.Host.Actions, sample.Host.Infos, sample.Host.Notes
	}
	sample.Host = host
	result, err := conform.Call(t.Context(), target, settings(t, sample.Settings), toRequest(t, sample))
	seen := answer{Result: result, Recorded: host.Recorded()}
	if err != nil {
		seen.Error = err.Error()
		var e *tea.Error
		if errors.As(err, &e) {
			seen.Details = conform.Details(e)
		}
	}
	return seen
}

func settings(t testing.TB, values map[string]any) tea.Settings {
	t.Helper()
	s := tea.Settings{}
	for key, v := range values {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("teatest: settings.%s: %v", key, err)
		}
		s[key] = raw
	}
	return s
}
