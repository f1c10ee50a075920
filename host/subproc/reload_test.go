package subproc

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

func TestVersionOfAPluginThatWasNotStarted(t *testing.T) {
	t.Parallel()
	dir, set, host := swappable(t, Options{})
	text("#!/bin/sh\nexit 1\n")(t, dir)
	if done := reload(t, set); done.Err == nil || done.Generation != 0 {
		t.Errorf("got %+v, want a refusal", done)
	}
	replace(t, dir, "2.0.0")
	if done := reload(t, set); done.Err != nil || done.Generation != 0 {
		t.Errorf("got %+v, want a version that is not running", done)
	}
	host.wantVersion(t, "2.0.0")
	if swaps, err := set.Reload(t.Context()); len(swaps) > 0 || err != nil {
		t.Errorf("nothing has changed: %v, %v", swaps, err)
	}
}

func TestFileThatMustNotBeRunDoesNotReplaceAPlugin(t *testing.T) {
	t.Parallel()
	dir, set, host := swappable(t, Options{})
	host.wantVersion(t, "1.0.0")
	path := filepath.Join(dir, "tea-plugin-swap")
	replace(t, dir, "2.0.0")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if done := reload(t, set); done.Err == nil || !strings.Contains(done.Err.Error(), "not executable (chmod +x)") || done.Generation != 1 {
		t.Errorf("got %+v", done)
	}
	if got, want := set.Status()[0].Refused, path+": not run: it is not executable (chmod +x)"; got != want {
		t.Errorf("the status says %q, want %q", got, want)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if swaps, err := set.Reload(t.Context()); len(swaps) > 0 || err != nil {
		t.Errorf("the file is gone: %v, %v", swaps, err)
	}
	host.wantVersion(t, "1.0.0")
}

// New plugins are found. What was logged is not logged again, and a plugin
// that was asked for its manifest in vain is not asked again.
func TestReloadFindsNewPlugins(t *testing.T) {
	t.Parallel()
	dir := install(t, "misnamed", "exits")
	var log safeBuffer
	set, problems := discover(t, Options{Dirs: []string{dir}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if len(problems) != 2 {
		t.Errorf("problems %v, want two", problems)
	}
	before := log.String()
	if err := os.Symlink(must(os.Executable()), filepath.Join(dir, "tea-plugin-probe")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if swaps, err := set.Reload(t.Context()); len(swaps) > 0 || err != nil {
			t.Errorf("got %v, %v", swaps, err)
		}
	}
	if unread := set.UnreadBundles(); len(unread) != 1 || unread[0].Name != "probe" {
		t.Errorf("unread %v, want the new plugin only", unread)
	}
	if err := set.Learn(t.Context()); err != nil {
		t.Error(err)
	}
	if len(set.Bundles()) != 1 {
		t.Errorf("found %v", set.Bundles())
	}
	if log.String() != before {
		t.Errorf("logged:\n%s", strings.TrimPrefix(log.String(), before))
	}
}

func TestPluginThatTheRulesRefuseDoesNotHideAnother(t *testing.T) {
	t.Parallel()
	project, installed := t.TempDir(), t.TempDir()
	replace(t, project, "2.0.0")
	replace(t, installed, "1.0.0")
	hiding := filepath.Join(project, "tea-plugin-swap")
	refusal := errors.New("the lock does not allow it")
	var refused atomic.Value
	refused.Store(hiding)
	set, problems := discover(t, Options{Dirs: []string{project, installed}, Verify: func(_, path string) error {
		if refused.Load() == path {
			return refusal
		}
		return nil
	}})
	if len(problems) != 1 || problems[0].Severity != diag.Warning || problems[0].Path != hiding || !errors.Is(problems[0].Err, refusal) {
		t.Errorf("problems %v, want a warning about %s", problems, hiding)
	}
	host := swapHostIn(t, set, t.TempDir())
	host.wantVersion(t, "1.0.0")
	if swaps, err := set.Reload(t.Context()); len(swaps) > 0 || err != nil {
		t.Errorf("nothing has changed: %v, %v", swaps, err)
	}

	refused.Store("")
	if done := reload(t, set); done.Err != nil || done.Path != hiding {
		t.Errorf("got %+v, want the plugin that is found first", done)
	}
	host.wantVersion(t, "2.0.0")

	refused.Store(hiding)
	replace(t, project, "2.1.0")
	if done := reload(t, set); !errors.Is(done.Err, refusal) {
		t.Errorf("got %+v, want the refusal of the new version", done)
	}
	host.wantVersion(t, "2.0.0")
}
