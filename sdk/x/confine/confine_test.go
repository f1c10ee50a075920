package confine_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

func attacks() []string {
	return []string{
		"/etc/passwd", "//etc/passwd", "..", "../x", "a/../../x", "a/..", "./../x", ".. /x", "a/.. ", "....//....//etc/passwd", "a/.....", "..;/x", "a/..;b=1/x", "%2e%2e;/x", "..%3b/x", "....%2f%2fx",
		"%2e%2e/x", "%2E%2E%2Fx", "..%2fx", "%252e%252e%252fx", "%25252e%25252e%25252fx", "%2525252e%2525252e/x", "%2fetc/passwd", "%252fetc", "a%2f..%2f..%2fx",
		"..%c0%afx", "%c0%ae%c0%ae/x", "a\nb", "a%0ab", "a\x7fb",
		"..\\x", "a\\b", "%5c..%5c", "C:\\x", "C:/x", "c:x", "file:///etc/passwd", "file:x", "http://a/b", "FILE%3a//x", "data:text/plain,x", "\\\\host\\share",
		"~/x", "~root/x", "a\u202eb", "a\u200bb", "\u2025/x", "\uff0e\uff0e/x", "..\uff0fx", "..\u2215x", "\ufeff../x", "a|b", "a>b", "a*", "a?", "<a", "a\"b", "a\xffb",
	}
}

func TestCleanRefuses(t *testing.T) {
	t.Parallel()
	for _, given := range attacks() {
		got, err := confine.Clean(given)
		if e := tea.AsError(err); e == nil || e.Type != tea.PermissionDenied {
			t.Errorf("Clean(%q) = %q, %v; want a permission_denied", given, got, err)
		}
	}
	for _, given := range []string{"", strings.Repeat("a", 5000), "a\x00b", "a%00b", "%2500", "a\x00/../b"} {
		if e := tea.AsError(func() error { _, err := confine.Clean(given); return err }()); e == nil || e.Type != tea.ValidationError {
			t.Errorf("%.20q of %d bytes gives %v, want a validation_error", given, len(given), e)
		}
	}
}

func TestCleanAccepts(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"a..;b": "a..;b", "..a": "..a", "a....": "a....", "a.txt": "a.txt", "a/b.txt": "a/b.txt", "./a": "a", "a//b/": "a/b", ".": ".", ".hidden": ".hidden", "a..b": "a..b", "...": "...", "ä b.txt": "ä b.txt",
		"100%": "100%", "50% off": "50% off", "a%20b": "a%20b", "2026-01-31T12:00:00.log": "2026-01-31T12:00:00.log", "a/b:c": "a/b:c", "x=1&y=(2)": "x=1&y=(2)",
	} {
		if got, err := confine.Clean(given); err != nil || got != want {
			t.Errorf("Clean(%q) = %q, %v; want %q", given, got, err, want)
		}
	}
}

// open returns a root next to a secret that must never be reached.
func open(t testing.TB) (root *confine.Root, dir, outside string) {
	t.Helper()
	base := t.TempDir()
	dir, outside = filepath.Join(base, "root"), filepath.Join(base, "outside")
	for _, d := range []string{dir, outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(outside, "secret"), "secret")
	root, err := confine.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir, outside
}

func write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func wantType(t *testing.T, what string, err error, want tea.ErrorType) {
	t.Helper()
	if e := tea.AsError(err); e == nil || e.Type != want {
		t.Errorf("%s gives %v, want a %s", what, err, want)
	}
}

func TestSymbolicLinksDoNotLeadOut(t *testing.T) {
	t.Parallel()
	root, dir, outside := open(t)
	for name, target := range map[string]string{
		"file": filepath.Join(outside, "secret"), "relative": "../outside/secret", "dir": outside, "up": "..", "inside": "real", "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "real"), "real")
	for _, path := range []string{"file", "relative", "dir/secret", "up/outside/secret"} {
		_, err := root.ReadFile(path, 100)
		wantType(t, "reading "+path, err, tea.PermissionDenied)
		wantType(t, "appending to "+path, root.AppendFile(path, []byte("x"), false), tea.PermissionDenied)
		_, err = root.Stat(path)
		wantType(t, "looking at "+path, err, tea.PermissionDenied)
	}
	for _, path := range []string{"file", "relative", "dir", "dir/new", "dir/secret", "up/new"} {
		wantType(t, "writing "+path, root.WriteFile(path, []byte("x"), true), tea.PermissionDenied)
	}
	for _, path := range []string{"dir/new", "dir/secret", "up/new"} {
		wantType(t, "deleting "+path, root.Remove(path), tea.PermissionDenied)
	}
	_, err := root.List(t.Context(), "dir", true, 10)
	wantType(t, "listing dir", err, tea.PermissionDenied)
	_, err = root.ReadFile("loop", 100)
	wantType(t, "reading loop", err, tea.ValidationError)
	if data, err := root.ReadFile("inside", 100); err != nil || string(data) != "real" {
		t.Errorf("a link that stays inside gives %q, %v", data, err)
	}
	if err := root.WriteFile("inside", []byte("mine"), false); err != nil || content(t, filepath.Join(dir, "real")) != "real" {
		t.Errorf("replacing a link: %v", err)
	}
	if got := content(t, filepath.Join(outside, "secret")); got != "secret" {
		t.Errorf("the file outside is now %q", got)
	}
	entries, err := root.List(t.Context(), ".", true, 100)
	if err != nil || len(entries) != 7 {
		t.Errorf("listing gives %v, %v; want the 7 entries of the root", entries, err)
	}
}

func TestWriteFileReplacesAndKeepsPermissions(t *testing.T) {
	t.Parallel()
	root, dir, _ := open(t)
	write(t, filepath.Join(dir, "a"), "old and longer")
	if err := os.Chmod(filepath.Join(dir, "a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile("a", []byte("new"), false); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "a"))
	if err != nil || info.Mode().Perm() != 0o600 || content(t, filepath.Join(dir, "a")) != "new" {
		t.Errorf("got mode %v, %v", info.Mode(), err)
	}
	wantType(t, "writing into a missing directory", root.WriteFile("x/y/z", nil, false), tea.NotFound)
	if err := root.WriteFile("x/y/z", []byte("z"), true); err != nil || content(t, filepath.Join(dir, "x/y/z")) != "z" {
		t.Errorf("create_dirs: %v", err)
	}
	wantType(t, "writing over a directory", root.WriteFile("x", nil, false), tea.ValidationError)
	wantType(t, "writing below a file", root.WriteFile("a/b", nil, true), tea.ValidationError)
	wantType(t, "writing the root", root.WriteFile(".", nil, false), tea.ValidationError)
}

func TestReadFileRefusesWhatIsNotAFile(t *testing.T) {
	t.Parallel()
	root, dir, _ := open(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Skip("no pipes here:", err)
	}
	write(t, filepath.Join(dir, "long"), "12345")
	for path, want := range map[string]tea.ErrorType{"pipe": tea.ValidationError, ".": tea.ValidationError, "missing": tea.NotFound, "long/x": tea.ValidationError, "long": tea.ResourceExhausted} {
		_, err := root.ReadFile(path, 4)
		wantType(t, "reading "+path, err, want)
	}
	wantType(t, "appending to a pipe", root.AppendFile("pipe", []byte("x"), false), tea.ValidationError)
	wantType(t, "writing over a pipe", root.WriteFile("pipe", []byte("x"), false), tea.ValidationError)
	if data, err := root.ReadFile("long", 5); err != nil || string(data) != "12345" {
		t.Errorf("a file of just the limit gives %q, %v", data, err)
	}
}

// A reader of a directory must not meet what a writer has not finished, nor
// what a writer that was killed left behind.
func TestListLeavesUnfinishedFilesOut(t *testing.T) {
	t.Parallel()
	root, dir, _ := open(t)
	for _, name := range []string{"a", ".hidden", ".ABC.tea-tmp", "mine.tea-tmp"} {
		write(t, filepath.Join(dir, name), "")
	}
	entries, err := root.List(t.Context(), ".", true, 10)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Path)
	}
	if got := strings.Join(names, " "); got != ".hidden a mine.tea-tmp" {
		t.Errorf("got %s", got)
	}
}

func TestRootMustBeADirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	_, err := confine.Open(file)
	wantType(t, "opening a file", err, tea.ValidationError)
	if !strings.Contains(tea.AsError(err).Message, "not a directory") {
		t.Errorf("got %v", err)
	}
}

func TestListStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	root, dir, _ := open(t)
	for _, name := range []string{"a", "b", "c"} {
		write(t, filepath.Join(dir, name), "")
	}
	_, err := root.List(t.Context(), ".", false, 2)
	wantType(t, "listing too much", err, tea.ValidationError)
	wantType(t, "deleting the root", root.Remove("."), tea.PermissionDenied)
}

func FuzzClean(f *testing.F) {
	for _, seed := range append(attacks(), "a/b.txt", "100%", "a%20b") {
		f.Add(seed)
	}
	root, _, outside := open(f)
	f.Fuzz(func(t *testing.T, given string) {
		name, err := confine.Clean(given)
		if err != nil {
			return
		}
		if !filepath.IsLocal(name) || strings.ContainsAny(name, "\x00\\") {
			t.Errorf("Clean(%q) = %q, which is not local", given, name)
		}
		if data, err := root.ReadFile(given, 100); err == nil {
			t.Errorf("ReadFile(%q) gives %q from an empty root", given, data)
		}
		if _, err := os.Stat(filepath.Join(outside, "secret")); err != nil {
			t.Fatal(err)
		}
	})
}
