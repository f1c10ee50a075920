package conform

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
)

// fakeEnv makes the test binary a plugin that breaks the rule of that name.
const fakeEnv = "TEA_CONFORM_FAKE"

func TestMain(m *testing.M) {
	fake := os.Getenv(fakeEnv)
	if fake == "" {
		os.Exit(m.Run())
	}
	bundle := Probe()
	switch fake {
	case "dies":
		bundle.Find("probe.echo").Handle = func(context.Context, *tea.Request) (*tea.Response, error) {
			os.Exit(3)
			return nil, nil
		}
	case "hand":
		if os.Getenv("TEA_PLUGIN_COOKIE") == "" {
			return
		}
	case "forgets":
		bundle.Find("probe.keep").Handle = func(context.Context, *tea.Request) (*tea.Response, error) {
			return tea.Respond(map[string]any{"before": nil}), nil
		}
	case "grabs":
		lock, err := os.OpenFile(os.Getenv("TEA_CONFORM_LOCK"), os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		}
		if err != nil {
			panic(err)
		}
		defer lock.Close()
	case "orphan":
		// Another pipe replaces the host's.
		os.Setenv("TEA_PARENT_FD", pipeThatStaysOpen())
	}
	serve.Main(bundle)
}

func pipeThatStaysOpen() string {
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		panic(err)
	}
	return strconv.Itoa(fds[0])
}

// fake starts the test binary as a plugin that breaks a rule.
func fake(t *testing.T, rule string) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self)
	cmd.Env = append(os.Environ(), fakeEnv+"="+rule, "TEA_CONFORM_LOCK="+filepath.Join(t.TempDir(), "lock"))
	process, err := Start(t.Context(), cmd, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Close)
	return process
}

// failures runs the suite and returns the failures with the number of checks
// that passed.
func failures(t *testing.T, target Target) (map[string]Result, int) {
	t.Helper()
	failed, passed := map[string]Result{}, 0
	err := Suite{}.Run(t.Context(), target, func(r Result) {
		switch r.Status {
		case Failed:
			failed[r.Check] = r
		case Passed:
			passed++
		case Skipped:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return failed, passed
}

// changedBundle changes the answers of a linked bundle.
type changedBundle struct {
	Target
	answer func(*tea.Request, *tea.Response, error) (*tea.Response, error)
}

type changedInstance struct {
	Instance
	changedBundle
}

func (b changedBundle) Open(ctx context.Context, s tea.Settings) (Instance, error) {
	inst, err := b.Target.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	return changedInstance{inst, b}, nil
}

func (b changedInstance) Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	resp, err := b.Instance.Invoke(ctx, req)
	return b.answer(req, resp, err)
}

func TestEachMistakeHasItsCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer func(*tea.Request, *tea.Response, error) (*tea.Response, error)
		want   map[string]string // what the detail contains, by check
	}{
		{"an unknown action has an answer", func(_ *tea.Request, resp *tea.Response, err error) (*tea.Response, error) {
			if failsWith(err, tea.NotFound) == nil {
				return tea.Respond(nil), nil
			}
			return resp, err
		}, map[string]string{
			"unknown action": "no error, want not_found", "concurrent failures": "no error, want not_found",
			"another action fails": "", "describe another action": "",
		}},
		{"numbers become floats", func(req *tea.Request, resp *tea.Response, err error) (*tea.Response, error) {
			if req.Action != "probe.echo" || err != nil {
				return resp, err
			}
			v, _ := resp.Result.Value()
			if fields, ok := v.(map[string]any); ok && fields["exact"] != nil {
				fields["exact"] = float64(fields["exact"].(int64))
				return tea.Respond(fields), nil
			}
			return resp, err
		}, map[string]string{"values": "result.exact is 9007199254740992.0 (number), want 9007199254740993 (integer)"}},
		{"the details of an error are lost", func(_ *tea.Request, resp *tea.Response, err error) (*tea.Response, error) {
			if e := tea.AsError(err); e != nil && e.Type == tea.RateLimited {
				e.Details = nil
			}
			return resp, err
		}, map[string]string{"error": "the result differs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			failed, passed := failures(t, changedBundle{Linked(Probe()), c.answer})
			for check, want := range c.want {
				r, ok := failed[check]
				if !ok || !strings.Contains(r.Detail, want) {
					t.Errorf("%s: %+v, want a failure with %q", check, r, want)
				}
				if r.Remedy == "" {
					t.Errorf("%s has no remedy", check)
				}
				delete(failed, check)
			}
			if diff := cmp.Diff(map[string]Result{}, failed); diff != "" || passed == 0 {
				t.Errorf("%d passed; further failures: %s", passed, diff)
			}
		})
	}
}

// A process that ends during a check is started again for the others.
func TestCrashedPluginIsRestarted(t *testing.T) {
	t.Parallel()
	failed, passed := failures(t, fake(t, "dies"))
	if r := failed["values"]; !strings.HasPrefix(r.Detail, "the plugin's process ended: ") {
		t.Errorf("values: %+v", r)
	}
	for _, check := range []string{"health", "release", "shutdown", "stream"} {
		if r, ok := failed[check]; ok {
			t.Errorf("%s: %+v", check, r)
		}
	}
	if passed < 10 {
		t.Errorf("%d checks passed", passed)
	}
}

func TestProcessChecks(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]map[string]string{
		"hand":    {ByHand: "code 0"},
		"orphan":  {"end of the host": "still runs"},
		"forgets": {"swap": "want \"the state of the first process\""},
		// It cannot even start twice.
		"grabs": {"swap": "a second process, next to the first one", "shutdown": "", "end of the host": ""},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			failed, _ := failures(t, fake(t, fault))
			for check, detail := range want {
				if r, ok := failed[check]; !ok || !strings.Contains(r.Detail, detail) {
					t.Errorf("%s: %+v, want a failure with %q", check, r, detail)
				}
			}
			if len(failed) != len(want) {
				t.Errorf("failures: %+v", failed)
			}
		})
	}
}

// Every check that is reported says what to do about it.
func TestChecksHaveRemedies(t *testing.T) {
	t.Parallel()
	for _, c := range Checks() {
		if c.Remedy == "" {
			t.Errorf("%s has no remedy", c.Name)
		}
	}
}

// A suite ends when its context does.
func TestSuiteEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	n := 0
	err := Suite{}.Run(ctx, Linked(Probe()), func(Result) {
		n++
		cancel()
	})
	if err == nil || n != 1 {
		t.Errorf("err = %v after %d checks", err, n)
	}
}
