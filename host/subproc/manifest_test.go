package subproc

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/digest"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// Checking somebody's workflow must not run their programs.
func TestDiscoverStartsNothing(t *testing.T) {
	t.Parallel()
	dir, cache := install(t, "slowstart"), t.TempDir()
	o := Options{Dirs: []string{dir}, CacheDir: cache}
	set, problems := discoverStored(t, o)
	if u := set.UnreadBundles(); len(u) != 1 || u[0].Name != "slowstart" || len(problems) > 0 || starts(t, dir) != 0 {
		t.Fatalf("got %v, %v after %d starts", u, problems, starts(t, dir))
	}
	readOnly := o
	readOnly.StoredOnly = true
	set, _ = discoverStored(t, readOnly)
	if err := set.Learn(t.Context()); err != nil || starts(t, dir) != 0 {
		t.Fatalf("got %v after %d starts", err, starts(t, dir))
	}
	for range 2 {
		set, _ = discover(t, o) // learns what is not stored
		if diff := cmp.Diff([]string{"slowstart"}, names(set)); diff != "" {
			t.Fatal(diff)
		}
	}
	if n := starts(t, dir); n != 1 {
		t.Errorf("the plugin was started %d times, want once", n)
	}
	set, _ = discoverStored(t, readOnly)
	_, err := call(t.Context(), openIn(t, set, "slowstart"), "slowstart.not", nil)
	if wantError(t, err, tea.Canceled, "starts no plugins"); starts(t, dir) != 1 {
		t.Error("a plugin was started to be called")
	}
}

// scripted installs a plugin that is a script, which cannot run, with further
// files.
func scripted(t *testing.T, files ...string) binary {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tea-plugin-probe")
	for _, name := range append(files, filepath.Base(path)) {
		write(t, filepath.Join(filepath.Dir(path), name), "#!/bin/sh\nexit 1\n", 0o755)
	}
	b, err := inspect(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // past the umask
		t.Fatal(err)
	}
}

func probeManifest(files ...string) tea.Manifest {
	probe := teatest.Probe()
	m := probe.Manifest()
	m.Files = files
	return m
}

// changes are ways to change a plugin.
var changes = map[string]func(t *testing.T, b binary){
	"new binary": func(t *testing.T, b binary) { write(t, b.path, "#!/bin/sh\nexit 2\n", 0o755) },
	"new binary of an older date": func(t *testing.T, b binary) {
		write(t, b.path, "#!/bin/sh\nexit 2\n", 0o755)
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(b.path, old, old); err != nil {
			t.Fatal(err)
		}
	},
	"new script":     func(t *testing.T, b binary) { write(t, filepath.Join(filepath.Dir(b.path), "probe.py"), "x", 0o644) },
	"missing script": func(t *testing.T, b binary) { os.Remove(filepath.Join(filepath.Dir(b.path), "probe.py")) },
}

func TestStoredManifestIsStaleOnceThePluginChanges(t *testing.T) {
	t.Parallel()
	stores := map[string]func(t *testing.T, s manifestStore, b binary){
		"cached": func(_ *testing.T, s manifestStore, b binary) { s.keep(b, probeManifest("probe.py")) },
		"beside": func(t *testing.T, _ manifestStore, b binary) {
			if err := writeBeside(b, probeManifest("probe.py")); err != nil {
				t.Fatal(err)
			}
		},
		"beside, without checksums": func(t *testing.T, _ manifestStore, b binary) {
			data, err := json.Marshal(probeManifest("probe.py"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, b.path+".json", string(data), 0o644)
		},
	}
	for where, store := range stores {
		for how, change := range changes {
			t.Run(where+", "+how, func(t *testing.T) {
				t.Parallel()
				b := scripted(t, "probe.py")
				s := manifestStore{dir: filepath.Join(t.TempDir(), "cache"), logger: discardLogger}
				store(t, s, b)
				for range 2 {
					m, err := s.read(b)
					if diff := cmp.Diff(probeManifest("probe.py").Files, m.Files); err != nil || diff != "" {
						t.Fatal(err, diff)
					}
				}
				change(t, b)
				b, err := inspect(filepath.Dir(b.path), filepath.Base(b.path))
				if err != nil {
					t.Fatal(err)
				}
				if m, err := s.read(b); err == nil {
					t.Errorf("the manifest of another plugin was read: %s", m.Name)
				}
			})
		}
	}
}

// A package is copied and unpacked in any order and with any times.
func TestManifestBesideCountsAfterACopy(t *testing.T) {
	t.Parallel()
	b := scripted(t)
	if err := writeBeside(b, probeManifest()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(b.path + ".json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tea-plugin-probe.json"), string(data), 0o644)
	write(t, filepath.Join(dir, "tea-plugin-probe"), "#!/bin/sh\nexit 1\n", 0o755)
	set, problems := discoverStored(t, Options{Dirs: []string{dir}, StoredOnly: true})
	if diff := cmp.Diff([]string{"probe"}, names(set)); diff != "" || len(problems) > 0 {
		t.Error(diff, problems)
	}
}

func TestUnusableManifestBesideIsExplained(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"cut", `{"name": "probe", `, 0o644, "is not valid"},
		{"open", `{}`, 0o666, "every user can write to it"},
		{"another's", strings.Replace(manifestText(t), `"probe"`, `"other"`, 1), 0o644, `is the manifest of "other"`},
		{"large", `{"name": "` + strings.Repeat("x", maxManifest) + `"}`, 0o644, "larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := scripted(t)
			write(t, b.path+".json", c.text, c.mode)
			set, _ := discoverStored(t, Options{Dirs: []string{filepath.Dir(b.path)}})
			if u := set.UnreadBundles(); len(u) != 1 || !strings.Contains(u[0].Reason, c.want) {
				t.Errorf("got %v, want %q", u, c.want)
			}
		})
	}
}

func manifestText(t *testing.T) string {
	t.Helper()
	data, err := json.Marshal(probeManifest())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// What somebody else could have written is not read.
func TestCacheOfOthersIsNotTrusted(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir, file string) error{
		"open directory": func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"open file":      func(_, file string) error { return os.Chmod(file, 0o606) },
		"linked file": func(dir, file string) error {
			if err := os.Rename(file, dir+"/elsewhere"); err != nil {
				return err
			}
			return os.Symlink(dir+"/elsewhere", file)
		},
		"cut file": func(_, file string) error { return os.Truncate(file, 20) },
		"another's file": func(_, file string) error {
			if os.Geteuid() != 0 {
				return os.Remove(file) // only root can give files away
			}
			return os.Chown(file, 12345, 12345)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := scripted(t)
			s := manifestStore{dir: filepath.Join(t.TempDir(), "cache"), logger: discardLogger}
			s.keep(b, probeManifest())
			info, err := os.Stat(s.file(b))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Fatal(info, err)
			}
			if dir, err := os.Stat(s.dir); err != nil || dir.Mode().Perm() != 0o700 {
				t.Fatal(dir, err)
			}
			if err := spoil(s.dir, s.file(b)); err != nil {
				t.Fatal(err)
			}
			if m, err := s.read(b); err == nil {
				t.Errorf("read %s", m.Name)
			}
		})
	}
}

func TestCacheKeepsOneManifestOfABinary(t *testing.T) {
	t.Parallel()
	b := scripted(t)
	s := manifestStore{dir: t.TempDir(), logger: discardLogger}
	s.keep(b, probeManifest())
	changes["new binary"](t, b)
	b.state = digest.State(b.path)
	s.keep(b, probeManifest())
	if kept, _ := filepath.Glob(filepath.Join(s.dir, "*")); len(kept) != 1 {
		t.Errorf("the cache holds %v, want one manifest", kept)
	}
}

// The workflow was checked against the manifest of another binary.
func TestPluginThatIsReplacedBeforeItStarts(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it replaces processes again and again")
	self, err := os.ReadFile(must(os.Executable()))
	if err != nil {
		t.Fatal(err)
	}
	replaced := func(t *testing.T, known tea.Manifest) error {
		t.Helper()
		dir := t.TempDir()
		path := filepath.Join(dir, "tea-plugin-probe")
		write(t, path, "old", 0o755)
		b, err := inspect(dir, filepath.Base(path))
		if err != nil {
			t.Fatal(err)
		}
		cache := t.TempDir()
		manifestStore{dir: cache, logger: discardLogger}.keep(b, known)
		set, _ := discoverStored(t, Options{Dirs: []string{dir}, CacheDir: cache})
		write(t, path+".new", string(self), 0o755)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		_, err = call(t.Context(), openIn(t, set, "probe"), "probe.echo", nil)
		if err != nil { // the next run is checked with the new manifest
			next, _ := discoverStored(t, Options{Dirs: []string{dir}, CacheDir: cache})
			if diff := cmp.Diff([]string{"probe"}, names(next)); diff != "" {
				t.Error(diff)
			}
		}
		return err
	}
	t.Run("by one that offers the same", func(t *testing.T) {
		t.Parallel()
		if err := replaced(t, probeManifest()); err != nil {
			t.Error(err)
		}
	})
	t.Run("by one that offers more", func(t *testing.T) {
		t.Parallel()
		old := probeManifest()
		old.Version, old.Actions = "0.0.1", []tea.ActionInfo{*old.Find("probe.echo")}
		if err := replaced(t, old); err != nil {
			t.Error(err)
		}
	})
	t.Run("by one that does not", func(t *testing.T) {
		t.Parallel()
		old := probeManifest()
		old.Version = "0.0.1"
		gone := old.Actions[0]
		gone.Name = "probe.gone"
		old.Actions = append(slices.Clone(old.Actions), gone)
		wantError(t, replaced(t, old), tea.DependencyMissing, "was replaced (version 0.0.1 by", "run it again", "no action probe.gone")
	})
}

func must(path string, err error) string {
	if err != nil {
		panic(err)
	}
	return path
}

func TestRefreshStoresManifests(t *testing.T) {
	t.Parallel()
	dir, cache := install(t, "probe", "exits", "misnamed"), t.TempDir()
	o := Options{Dirs: []string{dir}, CacheDir: cache}
	set, _ := discoverStored(t, o)
	failed := 0
	for _, a := range set.Refresh(t.Context(), true) {
		if a.Err != nil {
			failed++
		}
	}
	if failed != 2 {
		t.Errorf("%d plugins failed, want 2", failed)
	}
	for _, cache := range []string{cache, t.TempDir()} { // from the cache, then from next to the binary
		o.CacheDir = cache
		set, _ = discoverStored(t, o)
		if diff := cmp.Diff([]string{"probe"}, names(set)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFirstStoredManifestIsStillValid(t *testing.T) {
	t.Parallel()
	m, err := readManifest(filepath.Join("..", "..", "test", "compat", "v1", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "crash" || m.Find("crash.not") == nil || m.Find("crash.not").Params == nil {
		t.Errorf("the manifest is not complete: %+v", m)
	}
	if n := needsOf(m.Manifest); n.startTimeout != 0 || n.env != nil {
		t.Errorf("it declares needs: %+v", n)
	}
}

// As on a device whose disk is read-only: nothing is wrong with the plugin.
func TestStoredManifestNeedsNoCache(t *testing.T) {
	t.Parallel()
	b := scripted(t, "probe.py")
	if err := writeBeside(b, probeManifest("probe.py")); err != nil {
		t.Fatal(err)
	}
	var log safeBuffer
	s := manifestStore{dir: filepath.Join(b.path, "cache"), logger: slog.New(slog.NewTextHandler(&log, nil))}
	if m, err := s.read(b); err != nil || m.Name != "probe" || log.String() != "" {
		t.Errorf("got %q, %v, and logged %q", m.Name, err, log.String())
	}
}
