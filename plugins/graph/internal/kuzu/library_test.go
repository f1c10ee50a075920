//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// prepared copies the prepared files into a folder and returns that of the bridge.
func prepared(t *testing.T) (dir, bridge string) {
	t.Helper()
	need(t)
	from, err := find("")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, name := range []string{bridgeFile, sumsFile} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(from), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	engine := releases[runtime.GOARCH].file
	if err := os.Symlink(filepath.Join(filepath.Dir(from), engine), filepath.Join(dir, engine)); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, bridgeFile)
}

// Nothing of a library that is not the prepared one is loaded.
func TestAnotherLibraryIsRefused(t *testing.T) {
	t.Parallel()
	overwrite := func(t *testing.T, path string, f func([]byte) []byte) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.Remove(path)
		}
		if err == nil {
			err = os.WriteFile(path, f(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	flip := func(text []byte) []byte { text[len(text)/2] ^= 1; return text }
	engine := releases[runtime.GOARCH].file
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   tea.ErrorType
		says   string
	}{
		"missing folder": {func(t *testing.T, dir string) { os.RemoveAll(dir) }, tea.DependencyMissing, "scripts/kuzu install"},
		"missing engine": {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, engine)) }, tea.DependencyMissing, "scripts/kuzu install"},
		"missing sums":   {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, sumsFile)) }, tea.DependencyMissing, "scripts/kuzu install"},
		"changed engine": {func(t *testing.T, dir string) { overwrite(t, filepath.Join(dir, engine), flip) }, tea.PermissionDenied, "digest differs"},
		"changed bridge": {func(t *testing.T, dir string) { overwrite(t, filepath.Join(dir, bridgeFile), flip) }, tea.PermissionDenied, "digest differs"},
		"truncated bridge": {func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, bridgeFile), func(b []byte) []byte { return b[:10] })
		}, tea.DependencyMissing, "not a library"},
		"text": {func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, engine), func([]byte) []byte { return []byte(strings.Repeat("x", 100)) })
		}, tea.DependencyMissing, "not a library"},
		"other architecture": {func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, bridgeFile), func(b []byte) []byte { b[18] = 40; return b })
		}, tea.DependencyMissing, "another architecture"},
		"writable for others": {func(t *testing.T, dir string) { os.Chmod(filepath.Join(dir, bridgeFile), 0o666) }, tea.PermissionDenied, "other users can change it"},
		"release of an engine": {func(t *testing.T, dir string) {
			changeSum(t, dir, engine)
			overwrite(t, filepath.Join(dir, engine), flip)
		}, tea.PermissionDenied, "digest differs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, bridge := prepared(t)
			c.change(t, dir)
			err := verify(bridge)
			if _, missing := os.Stat(bridge); missing != nil {
				_, err = Open(t.Context(), store.Options{Dir: t.TempDir(), Create: true, Library: bridge})
			}
			if e := tea.AsError(err); err == nil || e.Type != c.want || !strings.Contains(e.Message, c.says) {
				t.Errorf("got %v, want a %s that says %q", err, c.want, c.says)
			}
		})
	}
}

// changeSum writes the sum of a changed engine, which does not help: the digest
// of the release is part of the plugin.
func changeSum(t *testing.T, dir, name string) {
	t.Helper()
	sum := sha256.Sum256([]byte("other"))
	file, err := os.OpenFile(filepath.Join(dir, sumsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintf(file, "%x  %s\n", sum, name)
		file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestThePreparedLibraryIsAccepted(t *testing.T) {
	t.Parallel()
	_, bridge := prepared(t)
	if err := verify(bridge); err != nil {
		t.Error(err)
	}
}

func TestADatabaseOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	need(t)
	for name, c := range map[string]struct {
		content string
		says    string
	}{
		"another program": {"SQLite format 3\x00 and more", "is not a database of a graph"},
		"newer format":    {"KUZU\x63\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("\x00", 5000), "newer than the format 39"},
		"text":            {"hello", "is not a database of a graph"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, databaseFile)
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), store.Options{Dir: dir, Create: true})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != c.content {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// The log of a database that was removed is not applied to a new one.
func TestAStrayLogIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	need(t)
	path := filepath.Join(dir, databaseFile+walSuffix)
	if err := os.WriteFile(path, []byte(strings.Repeat("stray", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	db := opened(t, dir)
	apply(t, db, store.Batch{Entities: []store.Entity{entity("a", "thing", `{}`)}})
}
