//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
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
		}, tea.DependencyMissing, "a different architecture"},
		"bridge writable for others": {func(t *testing.T, dir string) { os.Chmod(filepath.Join(dir, bridgeFile), 0o666) }, tea.PermissionDenied, "other users can change"},
		"sums writable for a group":  {func(t *testing.T, dir string) { os.Chmod(filepath.Join(dir, sumsFile), 0o660) }, tea.PermissionDenied, "other users can change"},
		"folder writable for others": {func(t *testing.T, dir string) { os.Chmod(dir, 0o777) }, tea.PermissionDenied, "other users can change"},
		"bridge of another user":     {func(t *testing.T, dir string) { give(t, filepath.Join(dir, bridgeFile)) }, tea.PermissionDenied, "belongs to another user (uid 12345)"},
		"sums of another user":       {func(t *testing.T, dir string) { give(t, filepath.Join(dir, sumsFile)) }, tea.PermissionDenied, "belongs to another user (uid 12345)"},
		"folder of another user":     {func(t *testing.T, dir string) { give(t, dir) }, tea.PermissionDenied, "belongs to another user (uid 12345)"},
		"release of an engine": {func(t *testing.T, dir string) {
			changeSum(t, dir, engine)
			overwrite(t, filepath.Join(dir, engine), flip)
		}, tea.PermissionDenied, "digest differs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, bridge := prepared(t)
			c.change(t, dir)
			path, err := find(bridge)
			if err == nil {
				err = verify(path)
			}
			if e := tea.AsError(err); err == nil || e.Type != c.want || !strings.Contains(e.Message, c.says) {
				t.Errorf("got %v, want a %s that says %q", err, c.want, c.says)
			}
		})
	}
}

// give changes the owner of a file or folder to another user, if the test may do so.
func give(t *testing.T, path string) {
	t.Helper()
	if err := os.Chown(path, 12345, 12345); errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

// compiled puts a bridge of C code into a folder, with its sum.
func compiled(t *testing.T, code string) string {
	t.Helper()
	dir, bridge := prepared(t)
	source := filepath.Join(t.TempDir(), "bridge.c")
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("cc", "-shared", "-fPIC", "-o", bridge, source).CombinedOutput(); err != nil {
		t.Fatalf("scripts/kuzu needs a compiler, too: %v: %s", err, text)
	}
	text, err := os.ReadFile(bridge)
	if err != nil {
		t.Fatal(err)
	}
	sums := fmt.Sprintf("%x  %s\n", sha256.Sum256(text), bridgeFile)
	if err := errors.Join(os.Chmod(bridge, 0o600), os.WriteFile(filepath.Join(dir, sumsFile), []byte(sums), 0o600)); err != nil {
		t.Fatal(err)
	}
	return bridge
}

// A bridge that was prepared for another version of the plugin is not called.
func TestABridgeOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	const crash = "{ __builtin_trap(); }\n"
	var others strings.Builder
	for _, name := range []string{"free", "open", "close", "connect", "disconnect", "memory", "interrupt", "prepare", "finalize", "run", "execute", "entities", "adjacent", "having"} {
		fmt.Fprintf(&others, "void tea_kuzu_%s(void) %s", name, crash)
	}
	for code, says := range map[string]string{
		"long tea_kuzu_interface(void) { return 99; }\n" + others.String(): fmt.Sprintf("its interface has version 99 instead of %d", interfaceVersion),
		"long tea_kuzu_interface(void) { return 2; }\n":                    "it does not define tea_kuzu_",
		"void tea_kuzu_free(void) " + crash:                                "it does not define tea_kuzu_",
	} {
		bridge := compiled(t, code)
		if err := verify(bridge); err != nil {
			t.Fatal(err)
		}
		_, err := bind(bridge)
		if e := tea.AsError(err); err == nil || e.Type != tea.DependencyMissing || !strings.Contains(e.Message, bridge+" was prepared for another version of the plugin") || !strings.Contains(e.Message, says) {
			t.Errorf("got %v, want one that says %q", err, says)
		}
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

func TestARelativeLibraryIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := load("lib/" + bridgeFile); tea.AsError(err).Type != tea.ValidationError || !strings.Contains(err.Error(), LibraryVariable) {
		t.Error(err)
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
