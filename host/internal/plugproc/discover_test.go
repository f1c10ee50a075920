package plugproc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/diag"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func names(set *Set) []string {
	var all []string
	for _, b := range set.Bundles() {
		all = append(all, b.Manifest.Name)
	}
	return all
}

func TestFirstDirectoryWinsAndOddFilesAreReported(t *testing.T) {
	t.Parallel()
	first, second := install(t, "probe", "misnamed", "exits"), install(t, "probe", "crash")
	write := func(name string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(second, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // past the umask
			t.Fatal(err)
		}
	}
	write("tea-plugin-open", 0o757)
	write("tea-plugin-text", 0o644)
	write("other", 0o755)
	write("tea-plugin-stray.json", 0o644)
	if err := os.Mkdir(filepath.Join(second, "tea-plugin-dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	set, problems := discover(t, Options{Dirs: []string{first, filepath.Join(first, "missing"), second}})
	if diff := cmp.Diff([]string{"probe", "crash"}, names(set)); diff != "" {
		t.Error(diff)
	}
	if got := set.Bundles()[0].Path; got != filepath.Join(first, "tea-plugin-probe") {
		t.Errorf("probe is taken from %s", got)
	}
	for path, want := range map[string]struct {
		severity diag.Severity
		word     string
	}{
		filepath.Join(first, "tea-plugin-exits"):    {diag.Error, "the licence has run out"},
		filepath.Join(first, "tea-plugin-misnamed"): {diag.Error, `"another"`},
		filepath.Join(second, "tea-plugin-probe"):   {diag.Warning, "found first"},
		filepath.Join(second, "tea-plugin-open"):    {diag.Warning, "everybody may write"},
		filepath.Join(second, "tea-plugin-text"):    {diag.Warning, "not executable"},
	} {
		if !hasProblem(problems, path, want.severity, want.word) {
			t.Errorf("no %s about %s that mentions %q", want.severity, path, want.word)
		}
	}
	if len(problems) != 5 {
		t.Errorf("%d problems, want 5: %v", len(problems), problems)
	}
}

// Whoever may write to a directory puts a plugin into it.
func TestDirectoryThatEverybodyMayWriteToIsNotUsed(t *testing.T) {
	t.Parallel()
	open, own := install(t, "probe"), install(t, "probe")
	if err := os.Chmod(open, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	set, problems := discover(t, Options{Dirs: []string{open}, Named: 1})
	if b := set.Bundles(); len(b) != 1 || len(problems) != 0 {
		t.Errorf("named: got %v, %v", b, problems)
	}
	set, problems = discover(t, Options{Dirs: []string{open, own}})
	if b := set.Bundles(); len(b) != 1 || filepath.Dir(b[0].Path) != own {
		t.Errorf("got %v", b)
	}
	if len(problems) != 1 || !hasProblem(problems, open, diag.Warning, "everybody may write to it") {
		t.Errorf("got %v", problems)
	}
}

func hasProblem(problems []Problem, path string, severity diag.Severity, word string) bool {
	for _, p := range problems {
		if p.Path == path && p.Severity == severity && strings.Contains(p.Message, word) {
			return true
		}
	}
	return false
}

// starts counts how often the fake slowstart has been started.
func starts(t *testing.T, dir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, startsFile))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

func TestManifestIsAskedForOnce(t *testing.T) {
	t.Parallel()
	dir, cache := install(t, "slowstart"), t.TempDir()
	for range 3 {
		set, problems := discover(t, Options{Dirs: []string{dir}, CacheDir: cache})
		if len(problems) > 0 || len(set.Bundles()) != 1 {
			t.Fatal(problems)
		}
	}
	if n := starts(t, dir); n != 1 {
		t.Errorf("the plugin was started %d times, want once", n)
	}
	// A changed binary is asked again, and its old manifest goes.
	path := filepath.Join(dir, "tea-plugin-slowstart")
	self, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(self, 0), 0o755); err != nil {
		t.Fatal(err)
	}
	discover(t, Options{Dirs: []string{dir}, CacheDir: cache})
	if n := starts(t, dir); n != 2 {
		t.Errorf("the changed plugin was not asked again: %d starts", n)
	}
	if kept, _ := filepath.Glob(filepath.Join(cache, "*")); len(kept) != 1 {
		t.Errorf("the cache holds %v, want one manifest", kept)
	}
}

func TestPluginThatIsSilentCostsItsTimeOnce(t *testing.T) {
	t.Parallel()
	dir := install(t, "mute")
	path := filepath.Join(dir, "tea-plugin-mute")
	o := Options{Dirs: []string{dir}, CacheDir: t.TempDir(), StartTimeout: time.Second}
	_, problems := discover(t, o)
	if !hasProblem(problems, path, diag.Error, "no handshake in time; its last words: pondering") {
		t.Fatal(problems)
	}
	const noted = "pondering; asked at "
	patient := o
	patient.StartTimeout = time.Hour // it would hang if it were asked
	if _, problems = discover(t, patient); !hasProblem(problems, path, diag.Error, noted) {
		t.Errorf("got %v", problems)
	}
	asksAgain := func(why string, o Options) {
		t.Helper()
		if _, problems := discover(t, o); !hasProblem(problems, path, diag.Error, "pondering") || hasProblem(problems, path, diag.Error, noted) {
			t.Errorf("%s: %v", why, problems)
		}
	}
	again := o
	again.AskAgain = true
	asksAgain("on request", again)
	kept, _ := filepath.Glob(filepath.Join(o.CacheDir, "*"))
	if len(kept) != 1 {
		t.Fatalf("the cache holds %v", kept)
	}
	for why, when := range map[string]time.Time{"after a while": time.Now().Add(-silence), "with a clock that was wrong": time.Now().Add(time.Hour)} {
		if err := os.Chtimes(kept[0], when, when); err != nil {
			t.Fatal(err)
		}
		asksAgain(why, o)
	}
}

func TestManifestBesideTheBinaryCountsUnlessOlder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "tea-plugin-probe")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	probe := teatest.Probe()
	data, err := json.Marshal(probe.Manifest())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".json", data, 0o644); err != nil {
		t.Fatal(err)
	}
	set, problems := discover(t, Options{Dirs: []string{dir}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff([]string{"probe"}, names(set)); diff != "" {
		t.Error(diff)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path+".json", old, old); err != nil {
		t.Fatal(err)
	}
	set, problems = discover(t, Options{Dirs: []string{dir}})
	if len(set.Bundles()) != 0 || !hasProblem(problems, path, diag.Error, "exit status 1") || !hasProblem(problems, path+".json", diag.Warning, "older than its plugin") {
		t.Errorf("an outdated manifest was believed: %v", problems)
	}
	if err := os.WriteFile(path+".json", []byte(`{"name": "probe", `), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, problems := discover(t, Options{Dirs: []string{dir}}); !hasProblem(problems, path+".json", diag.Warning, "no manifest") {
		t.Errorf("nobody is told of a broken manifest: %v", problems)
	}
}

// One plugin too many must not stop every workflow of the device.
func TestPluginWithAnothersActionsIsLeftOut(t *testing.T) {
	t.Parallel()
	dir := install(t, "crash", "twin")
	set, problems := discover(t, Options{Dirs: []string{dir}})
	if diff := cmp.Diff([]string{"crash"}, names(set)); diff != "" {
		t.Error(diff)
	}
	if !hasProblem(problems, filepath.Join(dir, "tea-plugin-twin"), diag.Error, filepath.Join(dir, "tea-plugin-crash")+", which is found first, has the action crash.not too") {
		t.Errorf("got %v", problems)
	}
}

func TestOpenGivesOnlyDeclaredSettings(t *testing.T) {
	t.Parallel()
	set, _ := discover(t, Options{Dirs: []string{install(t, "probe")}})
	inst, err := set.Open(t.Context(), "probe", tea.Settings{"probe": []byte(`1`), "secret": []byte(`"x"`)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := call(t.Context(), inst, "probe.settings", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(map[string]any{"probe": int64(1)}), got); diff != "" {
		t.Error(diff)
	}
	_, err = set.Open(t.Context(), "nobody", nil)
	wantError(t, err, tea.NotFound)
}

func TestSearchPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"bare", nil, []string{"given", "plugins", "/usr/lib/tea/plugins"}},
		{"home", map[string]string{"HOME": "/h"}, []string{"given", "plugins", "/h/.local/share/tea/plugins", "/usr/lib/tea/plugins"}},
		{"all", map[string]string{"HOME": "/h", "XDG_DATA_HOME": "/d", "TEA_PLUGINS": "/a::/b"}, []string{"given", "/a", "/b", "plugins", "/d/tea/plugins", "/usr/lib/tea/plugins"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dirs, named := SearchPath([]string{"given"}, func(name string) string { return c.env[name] })
			if want := slices.Index(dirs, "plugins"); named != want {
				t.Errorf("%d of %q are named, want %d", named, dirs, want)
			}
			if diff := cmp.Diff(c.want, dirs); diff != "" {
				t.Error(diff)
			}
		})
	}
}
