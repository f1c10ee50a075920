package bundles

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
)

func write(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func manifest(name, version string) tea.Manifest {
	return tea.Manifest{Name: name, Version: version, Protocol: tea.ProtocolVersion, Actions: []tea.ActionInfo{{Name: name + ".run"}}}
}

// pack writes the bundle of a script into a directory.
func pack(t *testing.T, dir, name, version string) string {
	t.Helper()
	script := write(t, filepath.Join(t.TempDir(), "run"), "#!/bin/sh\n# "+version+"\n", 0o755)
	path := filepath.Join(dir, name+"-"+version+Suffix)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Pack(f, Contents{Manifest: manifest(name, version), Binaries: []string{script}}); err != nil {
		t.Fatal(err)
	}
	return path
}

func sign(t *testing.T, path string) Key {
	t.Helper()
	secret, err := GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	write(t, path+SignatureSuffix, string(b.Sign(secret)), 0o644)
	return secret.Public()
}

// installer installs into a new home directory.
func installer(t *testing.T) (*Installer, func(string) string) {
	t.Helper()
	home := t.TempDir()
	t.Cleanup(func() {
		_ = filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error { // entries are read-only
			if err == nil && d.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
	})
	getenv := func(name string) string { return map[string]string{"HOME": home}[name] }
	return &Installer{Store: UserStore(getenv), CacheDir: filepath.Join(home, "downloads")}, getenv
}

func TestInstallFromServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := sign(t, pack(t, dir, "text", "1.0.0"))
	pack(t, dir, "text", "2.0.0")
	files := http.FileServer(http.Dir(dir))
	plain := httptest.NewServer(files)
	t.Cleanup(plain.Close)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" {
			_, _ = w.Write([]byte("<html>Please log in.</html>"))
			return
		}
		if strings.HasPrefix(r.URL.Path, "/away/") {
			http.Redirect(w, r, plain.URL+"/text-1.0.0.teab", http.StatusFound)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	i, _ := installer(t)
	i.Client = server.Client()
	for source, want := range map[string]string{
		plain.URL + "/text-1.0.0.teab":       "only https is supported",
		server.URL + "/away/text-1.0.0.teab": "without https",
		server.URL + "/none.teab":            "the server answers 404",
		"ftp://example.org/x.teab":           "only https is supported",
		server.URL + "/page?token=hidden":    server.URL + "/page: it is not a bundle",
		server.URL + "/none?token=hidden":    server.URL + "/none: the server answers 404",
	} {
		if _, err := i.Install(t.Context(), source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", source, err, want)
		} else if strings.Contains(err.Error(), "hidden") {
			t.Errorf("the query is in the error: %v", err)
		}
	}
	i.Keys = [][]Key{{key}}
	changes, err := i.Install(t.Context(), server.URL+"/text-1.0.0.teab")
	if err != nil || len(changes) != 1 || changes[0].Now.Key != key.String() {
		t.Fatalf("%v, %v; want the signed version", changes, err)
	}
	if _, err := i.Install(t.Context(), server.URL+"/text-2.0.0.teab"); err == nil || !strings.Contains(err.Error(), server.URL+"/text-2.0.0.teab: it is not signed (there is no text-2.0.0.teab.minisig)") {
		t.Errorf("an unsigned version: %v", err)
	}
	if left, err := os.ReadDir(i.CacheDir); err != nil || len(left) > 0 {
		t.Errorf("downloads are left: %v, %v", left, err)
	}
}

func TestInstallFromDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, v := range []string{"1.9.0", "1.10.0", "1.10.0-rc.1"} {
		pack(t, dir, "text", v)
	}
	pack(t, dir, "mail", "1.0.0")
	i, _ := installer(t)
	changes, err := i.Install(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, c.Now.Name+" "+c.Now.Version)
	}
	if diff := cmp.Diff([]string{"mail 1.0.0", "text 1.10.0"}, got); diff != "" {
		t.Error(diff)
	}
	empty := t.TempDir()
	if _, err := i.Install(t.Context(), empty); err == nil || !strings.Contains(err.Error(), "has no bundle") {
		t.Errorf("an empty directory: %v", err)
	}
}

// flip changes a bit in the middle of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	write(t, path, string(data), 0o644)
}

func TestDamagedBundleDoesNotKeepTheOthersOfItsDirectoryFromBeingInstalled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := sign(t, pack(t, dir, "text", "1.0.0"))
	sign(t, pack(t, dir, "mail", "1.0.0")) // by another key
	damaged := pack(t, dir, "web", "1.0.0")
	flip(t, damaged)
	i, _ := installer(t)
	i.Keys = [][]Key{{key}}
	changes, err := i.Install(t.Context(), dir)
	if len(changes) != 1 || changes[0].Now.Name != "text" {
		t.Errorf("installed %v, want text", changes)
	}
	for _, want := range []string{damaged + ": ", filepath.Join(dir, "mail-1.0.0.teab") + ": the signature by key "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q in it", err, want)
		}
	}
	if catalog, err := ReadCatalog(dir); err != nil || len(catalog.Bundles) != 2 || len(catalog.Damaged) != 1 {
		t.Errorf("catalog %v, %v; want two bundles and a damaged one", catalog, err)
	}
	if changes, err := i.Install(t.Context(), damaged); err == nil || len(changes) > 0 {
		t.Errorf("the damaged bundle: %v, %v", changes, err)
	}
}

func TestOutdated(t *testing.T) {
	t.Parallel()
	old, stick := t.TempDir(), t.TempDir()
	for _, name := range []string{"text", "mail", "web"} {
		pack(t, old, name, "1.0.0")
	}
	i, _ := installer(t)
	if _, err := i.Install(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	pack(t, stick, "text", "1.0.1")
	pack(t, stick, "mail", "0.9.0")
	pack(t, stick, "new", "1.0.0")
	catalog, err := ReadCatalog(stick)
	if err != nil {
		t.Fatal(err)
	}
	installed, err := i.Store.List()
	if err != nil {
		t.Fatal(err)
	}
	want := []Update{{Name: "text", Installed: "1.0.0", Newest: "1.0.1", File: "text-1.0.1.teab"}}
	if diff := cmp.Diff(want, catalog.Outdated(installed)); diff != "" {
		t.Error(diff)
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	signed, unsigned := pack(t, dir, "text", "1.0.0"), pack(t, dir, "mail", "1.0.0")
	key := sign(t, signed)
	other := sign(t, pack(t, t.TempDir(), "text", "1.0.0"))
	i, getenv := installer(t)
	for _, source := range []string{signed, unsigned} {
		i.Keys = nil
		if source == signed {
			i.Keys = [][]Key{{key}}
		}
		if _, err := i.Install(t.Context(), source); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name string) string {
		return filepath.Join(getenv("HOME"), ".local", "share", "tea", "plugins", "tea-plugin-"+name)
	}
	foreign := write(t, filepath.Join(t.TempDir(), "tea-plugin-web"), "#!/bin/sh\n", 0o755)
	project := t.TempDir()
	lock, err := UpdateLock(i.Store, []Plugin{{manifest("text", "1.0.0"), link("text")}, {manifest("web", "1.0.0"), foreign}}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Write(filepath.Join(project, LockName)); err != nil {
		t.Fatal(err)
	}
	yes := []string{key.String()}
	tests := []struct {
		name  string
		rules Rules
		want  map[string]string // by plugin: a part of the error
	}{
		{"nothing", Rules{}, map[string]string{}},
		{"lock", Rules{Dirs: []string{project, project}}, map[string]string{"mail": "the plugin mail is not in it"}},
		{"no lock there", Rules{Dirs: []string{t.TempDir()}}, map[string]string{}},
		{"key", Rules{Keys: [][]string{yes}}, map[string]string{"mail": "is not signed", "web": "was not installed from a bundle"}},
		{"one of two keys", Rules{Keys: [][]string{{other.String(), key.String()}}}, map[string]string{"mail": "is not signed", "web": "was not installed"}},
		{"two lists", Rules{Keys: [][]string{yes, {other.String()}}}, map[string]string{"text": "signed by another key", "mail": "is not signed", "web": "was not installed"}},
		{"lock and key", Rules{Dirs: []string{project}, Keys: [][]string{yes}}, map[string]string{"mail": "is not signed", "web": "was not installed"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.rules.Getenv = getenv
			policy, err := LoadPolicy(tt.rules)
			if err != nil {
				t.Fatal(err)
			}
			for name, path := range map[string]string{"text": link("text"), "mail": link("mail"), "web": foreign} {
				err := policy.Verify(name, path)
				want, refused := tt.want[name]
				if refused != (err != nil) || refused && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v; want %q", name, err, want)
				}
			}
		})
	}
}

// The lock of one machine is completed on another one.
func TestLockKeepsOtherPlatforms(t *testing.T) {
	t.Parallel()
	path := write(t, filepath.Join(t.TempDir(), "tea-plugin-web"), "#!/bin/sh\n", 0o755)
	others := map[string]Digests{"plan9/mips": {lockedBinary: strings.Repeat("a", 64)}}
	previous := &Lock{Plugins: []Pinned{{Name: "web", Version: "1.0.0", Platforms: others}, {Name: "mail", Version: "1.0.0"}}}
	web := []Plugin{{manifest("web", "1.0.0"), path}}
	tests := []struct {
		name          string
		version       string
		names         []string
		wantPlatforms int
		wantPlugins   int
	}{
		{"same version", "1.0.0", nil, 2, 1},
		{"other version", "1.1.0", nil, 1, 1},
		{"by name", "1.0.0", []string{"web"}, 2, 2},
	}
	for _, tt := range tests {
		web[0].Manifest.Version = tt.version
		l, err := UpdateLock(nil, web, nil, previous, tt.names)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(l.Find("web").Platforms); got != tt.wantPlatforms || len(l.Plugins) != tt.wantPlugins {
			t.Errorf("%s: %d platforms and %d plugins, want %d and %d", tt.name, got, len(l.Plugins), tt.wantPlatforms, tt.wantPlugins)
		}
		if len(others) != 1 {
			t.Fatalf("%s: the previous lock has changed: %v", tt.name, others)
		}
	}
	if _, err := UpdateLock(nil, web, []string{"llm"}, nil, nil); err == nil || !strings.Contains(err.Error(), "tea plugin refresh llm") {
		t.Errorf("a plugin without a manifest: %v", err)
	}
	if _, err := UpdateLock(nil, web, nil, nil, []string{"nope"}); err == nil {
		t.Error("an unknown plugin was locked")
	}
}

func TestPolicyOfARunningHostFollowsItsLock(t *testing.T) {
	t.Parallel()
	plugin := write(t, filepath.Join(t.TempDir(), "tea-plugin-web"), "#!/bin/sh\n", 0o755)
	project := t.TempDir()
	_, getenv := installer(t)
	policy, err := WatchPolicy(Rules{Dirs: []string{project}, Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(project, LockName)
	if diff := cmp.Diff([]string{file}, policy.Files()); diff != "" {
		t.Error(diff)
	}
	steps := []struct {
		name   string
		change func() error
		want   string
	}{
		{"no lock", func() error { return nil }, ""},
		{"a link without a target", func() error { return os.Symlink("none", file) }, "read the changed lock"},
		{"a lock without it", func() error { return (&Lock{}).Write(file) }, "the plugin web is not in it"},
		{"a damaged lock", func() error { return os.WriteFile(file, []byte("{"), 0o600) }, "read the changed lock"},
		{"the lock again", func() error { return (&Lock{}).Write(file) }, "the plugin web is not in it"},
		{"no lock any more", func() error { return os.Remove(file) }, "the plugin web is not in it"},
		{"a lock with it", func() error {
			lock, err := UpdateLock(nil, []Plugin{{manifest("web", "1.0.0"), plugin}}, nil, nil, nil)
			return errors.Join(err, lock.Write(file))
		}, ""},
	}
	for _, step := range steps {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if err := policy.Verify("web", plugin); (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("%s: %v, want %q", step.name, err, step.want)
		}
	}
}

func TestUnreadableLockIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, LockName), 0o700); err != nil {
		t.Fatal(err)
	}
	var damaged *LockError
	if _, err := LoadPolicy(Rules{Dirs: []string{dir}}); !errors.As(err, &damaged) {
		t.Errorf("got %v, want a DamagedError", err)
	}
}

func TestIndexThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	offer := `{"name": "a", "version": "1.0.0", "platforms": ["any"], "file": "a.teab"}`
	index := write(t, filepath.Join(t.TempDir(), "index.json"), `{"bundles": [`+strings.Repeat(offer+",\n", maxCatalog/len(offer))+offer+"]}", 0o600)
	if _, err := ReadCatalog(index); err == nil || !strings.Contains(err.Error(), "at most 16 MiB") {
		t.Errorf("got %v", err)
	}
}
