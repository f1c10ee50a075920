package subproc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

func names(set *Plugins) []string {
	var all []string
	for _, b := range set.Bundles() {
		all = append(all, b.Manifest.Name)
	}
	return all
}

func TestFirstDirectoryTakesPrecedenceAndInvalidFilesAreReported(t *testing.T) {
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
	write("tea-plugin-stray.d", 0o644)
	if err := os.Mkdir(filepath.Join(second, "tea-plugin-dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	set, problems := discover(t, Options{Dirs: []string{first, second}})
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
		filepath.Join(second, "tea-plugin-open"):    {diag.Warning, "every user can write"},
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

// Everyone who can write to a directory can put a plugin into it.
func TestDirectoryThatEverybodyMayWriteToIsNotUsed(t *testing.T) {
	t.Parallel()
	open, own := install(t, "probe"), install(t, "probe")
	if err := os.Chmod(open, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	set, problems := discoverStored(t, Options{Dirs: []string{open}})
	if u := set.UnreadBundles(); len(u) != 1 || len(problems) != 0 {
		t.Errorf("named: got %v, %v", u, problems)
	}
	set, problems = discoverStored(t, Options{Standard: []string{open, own}})
	if u := set.UnreadBundles(); len(u) != 1 || filepath.Dir(u[0].Path) != own {
		t.Errorf("got %v", u)
	}
	if len(problems) != 1 || !hasProblem(problems, open, diag.Warning, "every user can write to it") {
		t.Errorf("got %v", problems)
	}
}

// A directory that was named and is not there is a mistake; the standard ones
// need not be there.
func TestNamedDirectoryMustExist(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	_, _, err := find(t.Context(), Options{Dirs: []string{missing}, CacheDir: t.TempDir()})
	var path *fs.PathError
	if !errors.As(err, &path) || path.Path != missing || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, problems := discoverStored(t, Options{Standard: []string{missing}, Project: missing}); len(problems) > 0 {
		t.Error(problems)
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

// starts counts how often the fake slowstart was started.
func starts(t *testing.T, dir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, startsFile))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// A plugin owns the namespace of its name. Others lose single actions.
func TestActionsOfAnotherPluginAreNotUsed(t *testing.T) {
	t.Parallel()
	dir := install(t, "abc", "crash", "twin")
	set, problems := discover(t, Options{Dirs: []string{dir}})
	got := map[string][]string{}
	for _, b := range set.Bundles() {
		for _, a := range b.Manifest.Actions {
			if b.Manifest.Name != "crash" {
				got[b.Manifest.Name] = append(got[b.Manifest.Name], a.Name)
			}
		}
	}
	want := map[string][]string{"abc": {"abc.own", "shared.x"}, "twin": {"twin.own"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	again, stored := discoverStored(t, Options{Dirs: []string{dir}, CacheDir: set.store.dir})
	if diff := cmp.Diff(names(set), names(again)); diff != "" {
		t.Error(diff)
	}
	path := func(name string) string { return filepath.Join(dir, prefix+name) }
	wantProblems := []Problem{
		{Severity: diag.Warning, Path: path("abc"), Message: "not used: crash.not; " + path("crash") + " owns the namespace crash"},
		{Severity: diag.Warning, Path: path("twin"), Message: "not used: crash.not; " + path("crash") + " owns the namespace crash"},
		{Severity: diag.Warning, Path: path("twin"), Message: "not used: shared.x; " + path("abc") + " is found first and has the same"},
	}
	if diff := cmp.Diff(wantProblems, stored); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if len(problems) != 0 {
		t.Errorf("before the manifests were known: %v", problems)
	}
}

func TestOpenPassesOnlyDeclaredSettings(t *testing.T) {
	t.Parallel()
	set, _ := discover(t, Options{Dirs: []string{install(t, "probe")}})
	inst, err := set.open("probe", tea.Settings{"probe": []byte(`1`), "secret": []byte(`"x"`)})
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
	_, err = set.open("nobody", nil)
	wantError(t, err, tea.NotFound)
}

func TestSearch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		env            map[string]string
		dirs, standard []string
	}{
		{"bare", nil, []string{"given"}, []string{"/usr/lib/tea/plugins"}},
		{"home", map[string]string{"HOME": "/h"}, []string{"given"}, []string{"/h/.local/share/tea/plugins", "/usr/lib/tea/plugins"}},
		{"all", map[string]string{"HOME": "/h", "XDG_DATA_HOME": "/d", "TEA_PLUGINS": "/a::/b:given"}, []string{"given", "/a", "/b"}, []string{"/d/tea/plugins", "/usr/lib/tea/plugins"}},
		{"relative", map[string]string{"XDG_DATA_HOME": "d"}, []string{"given"}, []string{"/usr/lib/tea/plugins"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := Options{Dirs: []string{"given"}}.Search(func(name string) string { return c.env[name] })
			if diff := cmp.Diff([][]string{c.dirs, c.standard}, [][]string{o.Dirs, o.Standard}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A refused plugin is neither started nor is its stored manifest used.
func TestRefusedPluginIsNotFound(t *testing.T) {
	t.Parallel()
	dir := install(t, "probe")
	options := Options{Dirs: []string{dir}, CacheDir: t.TempDir()}
	set, _, err := find(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Shutdown(t.Context())
	if asked := set.Refresh(t.Context(), true); len(asked) != 1 || asked[0].Err != nil {
		t.Fatalf("store the manifest: %v", asked)
	}
	refusal := errors.New("it is not in the lock")
	options.Verify = func(name, path string) error {
		if name != "probe" || path != filepath.Join(dir, "tea-plugin-probe") {
			t.Errorf("asked about %s, %s", name, path)
		}
		return refusal
	}
	locked, problems, err := find(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer locked.Shutdown(t.Context())
	if len(locked.Bundles()) != 0 || len(locked.UnreadBundles()) != 0 {
		t.Errorf("found %v and %v; want nothing", locked.Bundles(), locked.UnreadBundles())
	}
	if len(problems) != 1 || !errors.Is(problems[0].Err, refusal) || !strings.Contains(problems[0].Message, "not used: it is not in the lock") {
		t.Errorf("problems %v; want the refusal", problems)
	}
}

// A plugin that is a link, as in the store, has its manifest and its files next
// to the target.
func TestLinkedPluginFindsItsManifest(t *testing.T) {
	t.Parallel()
	entry, links := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(entry, "tea-plugin-probe"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	stored := tea.Manifest{Name: "probe", Version: "1.0.0", Protocol: tea.ProtocolVersion, Actions: []tea.ActionInfo{{Name: "probe.echo"}}}
	if err := writeBeside(binary{name: "probe", path: filepath.Join(entry, "tea-plugin-probe")}, stored); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(entry, "tea-plugin-probe"), filepath.Join(links, "tea-plugin-probe")); err != nil {
		t.Fatal(err)
	}
	linked, problems, err := find(t.Context(), Options{Dirs: []string{links}, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer linked.Shutdown(t.Context())
	if len(linked.Bundles()) != 1 || len(problems) != 0 {
		t.Errorf("found %v, %v; want the plugin with its manifest", linked.Bundles(), problems)
	}
}
