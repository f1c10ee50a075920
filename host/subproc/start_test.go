package subproc

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// A binary that is not a plugin returns a typed error with its last words,
// in time, and leaves nothing behind.
func TestStartFailures(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it runs into time limits")
	for _, c := range []struct {
		fake  string
		want  tea.ErrorType
		words []string
	}{
		{"exits", tea.PluginCrashed, []string{"exit status 3", "the licence has run out"}},
		{"rubbish", tea.InternalError, []string{"Hello, world!"}},
		{"floods", tea.InternalError, []string{"not a tea plugin"}},
		{"mute", tea.PluginCrashed, []string{"no handshake within 5s", "pondering"}},
		{"deaf", tea.PluginCrashed, []string{"no answer within 5s (settings.plugins.fake.start_timeout_seconds)"}},
		{"newer", tea.DependencyMissing, []string{"version 2", "speaks 1"}},
		{"netrpc", tea.DependencyMissing, []string{"netrpc"}},
	} {
		t.Run(c.fake, func(t *testing.T) {
			t.Parallel()
			limit := time.Minute
			if c.fake == "mute" || c.fake == "deaf" {
				limit = silence
			}
			err := launchFails(t, Options{StartTimeout: limit}, filepath.Join(install(t, c.fake), prefix+c.fake))
			wantError(t, err, c.want, append(c.words, "plugin fake did not start")...)
		})
	}
}

// launchFails starts a binary and returns the error.
func launchFails(t *testing.T, o Options, path string) error {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	l := &launcher{options: o.withDefaults()}
	defer func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	}()
	p, err := l.launch(t.Context(), "fake", path, path, needs{})
	if err == nil {
		p.stop(t.Context())
		t.Fatal("the plugin started")
	}
	if rest, _ := filepath.Glob(filepath.Join(l.dir.Path, "*")); len(rest) != 1 {
		t.Errorf("the failed start left %v", rest)
	}
	return err
}

func TestFilesThatCannotBeRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, content, word string }{
		{"not an executable", "\x7fELF but not really", "not a program for this machine (" + runtime.GOOS + "/" + runtime.GOARCH + ")"},
		{"empty", "", "not a program for this machine"},
		{"missing interpreter", "#!/no/such/interpreter -u\n", `its interpreter "/no/such/interpreter -u" is not installed`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "tea-plugin-fake")
			if err := os.WriteFile(path, []byte(c.content), 0o755); err != nil {
				t.Fatal(err)
			}
			wantError(t, launchFails(t, Options{}, path), tea.DependencyMissing, c.word)
		})
	}
}

func TestRefusedPluginIsNotStarted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(install(t, "crash"), "tea-plugin-crash")
	refuse := func(string, string) error { return errors.New("the SHA-256 is another one") }
	err := launchFails(t, Options{Verify: refuse}, path)
	wantError(t, err, tea.PermissionDenied, "SHA-256")
}

// A hard link, as backups make them, changes the file's status but not its contents.
func TestPluginIsLinkedWhileItStarts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), prefix+"probe")
	// A copy that this process writes could still be open in a process that another test forks.
	if out, err := exec.Command("cp", "-L", filepath.Join(install(t, "probe"), prefix+"probe"), path).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	verified := 0
	verify := func(string, string) error {
		verified++
		if verified > 1 {
			return nil
		}
		return os.Link(path, path+".backup")
	}
	l := &launcher{options: Options{Verify: verify, Logger: slog.New(slog.DiscardHandler)}.withDefaults()}
	defer l.close()
	p, err := l.launch(t.Context(), "probe", path, path, needs{})
	if err != nil {
		t.Fatal(err)
	}
	p.stop(t.Context())
	if verified != 2 {
		t.Errorf("verified %d times", verified)
	}
}

func TestSocketPathsFitWhereTheTempDirIsDeep(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", deep)
	t.Setenv("XDG_RUNTIME_DIR", deep)
	if _, err := call(t.Context(), open(t, "probe"), "probe.echo", nil); err != nil {
		t.Fatal(err)
	}
}

func TestAPluginGetsTheVariablesThatItNeedsAndNoKeys(t *testing.T) {
	t.Parallel()
	host := []string{"PATH=/bin", "DECLARED=1", "OPENAI_API_KEY=secret", "HOME=/root", "LD_PRELOAD=x.so", "DECLARED_NOT=1", "broken"}
	want := []string{"PATH=/bin", "DECLARED=1", "HOME=/root", "EXTRA=yes"}
	if diff := cmp.Diff(want, cleanEnv(host, []string{"DECLARED"}, []string{"EXTRA=yes"})); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}
