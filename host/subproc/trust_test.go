package subproc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A checkout's ./plugins counts once it was trusted, as it was then.
func TestProjectPluginsNeedTrust(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// change happens to the trusted directory; its result is the project's.
		change func(t *testing.T, trust Trust, dir string) string
		used   bool
		want   string
	}{
		{"as trusted", func(_ *testing.T, _ Trust, dir string) string { return dir }, true, ""},
		{"never trusted", func(t *testing.T, trust Trust, dir string) string { return rename(t, dir, "moved") }, false, "tea plugin trust "},
		{"no longer trusted", func(t *testing.T, trust Trust, dir string) string { return dir + noError(t, trust.Remove(dir)) }, false, "tea plugin trust "},
		{"replaced by another link", func(t *testing.T, _ Trust, dir string) string {
			other := install(t, "probe")
			rename(t, dir, "moved")
			return dir + noError(t, os.Symlink(other, dir))
		}, false, "tea plugin trust "},
		{"reached through a link", func(t *testing.T, _ Trust, dir string) string {
			link := filepath.Join(t.TempDir(), "plugins")
			return link + noError(t, os.Symlink(dir, link))
		}, true, ""},
		{"open for everybody", func(t *testing.T, _ Trust, dir string) string { return dir + noError(t, os.Chmod(dir, 0o777)) }, false, "every user can write"},
		{"of another owner", func(t *testing.T, _ Trust, dir string) string {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			return dir + noError(t, os.Chown(dir, 12345, 12345))
		}, false, "tea plugin trust "},
		{"with a list of another user", func(t *testing.T, trust Trust, dir string) string {
			return dir + noError(t, os.Chmod(trust.File, 0o622))
		}, false, "other users can write"},
		{"with a broken list", func(t *testing.T, trust Trust, dir string) string {
			return dir + noError(t, os.WriteFile(trust.File, []byte("["), 0o600))
		}, false, "trusted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, trust := install(t, "probe"), Trust{filepath.Join(t.TempDir(), "tea", "trusted.json")}
			if _, err := trust.Add(dir); err != nil {
				t.Fatal(err)
			}
			set, problems := discoverStored(t, Options{Project: c.change(t, trust, dir), Trust: trust})
			if used := len(set.UnreadBundles()) == 1; used != c.used {
				t.Errorf("used: %t, want %t; %v", used, c.used, problems)
			}
			if c.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Message, c.want)) {
				t.Errorf("got %v, want %q", problems, c.want)
			}
		})
	}
}

func rename(t *testing.T, dir, name string) string {
	t.Helper()
	moved := filepath.Join(filepath.Dir(dir), name)
	return moved + noError(t, os.Rename(dir, moved))
}

// noError is "", for the end of an expression.
func noError(t *testing.T, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

func TestTrust(t *testing.T) {
	t.Parallel()
	trust, dir := Trust{filepath.Join(t.TempDir(), "trusted.json")}, t.TempDir()
	if _, err := trust.Add(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	if err := trust.Remove(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("remove what was not trusted: %v", err)
	}
	for range 2 {
		if _, err := trust.Add(dir); err != nil {
			t.Fatal(err)
		}
	}
	if dirs, err := trust.List(); err != nil || len(dirs) != 1 {
		t.Errorf("got %v, %v", dirs, err)
	}
	if info, err := os.Stat(trust.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := trust.Remove(dir); err != nil {
		t.Errorf("remove a directory that is gone: %v", err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := trust.Add(open); err == nil {
		t.Error("a directory that everybody can write to was trusted")
	}
}
