package kill

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host/bundles"
	sdk "github.com/the-edge-agent/tea/sdk"
)

// storeAttack is a change of the store of plugins that is killed.
type storeAttack struct {
	name string
	// before are the commands that prepare the store.
	before [][]string
	args   []string
	// either are the active versions that can be there after a kill; "" is a
	// plugin that is not installed.
	either []string
	// again repeats the command; its exit codes can be these.
	again []int
	// after is the active version then, and entries the number of versions.
	after   string
	entries int
}

var storeAttacks = []storeAttack{
	{
		name: "first install", args: []string{"plugin", "install", "1.teab"},
		either: []string{"", "1.0.0"}, again: []int{0}, after: "1.0.0", entries: 1,
	},
	{
		name: "install", before: [][]string{{"plugin", "install", "1.teab"}}, args: []string{"plugin", "install", "2.teab"},
		either: []string{"1.0.0", "2.0.0"}, again: []int{0}, after: "2.0.0", entries: 2,
	},
	{
		name: "rollback", before: [][]string{{"plugin", "install", "1.teab"}, {"plugin", "install", "2.teab"}},
		args: []string{"plugin", "rollback", "text"}, either: []string{"2.0.0", "1.0.0"}, again: []int{0, 6}, after: "1.0.0", entries: 2,
	},
	{
		name: "gc", before: [][]string{{"plugin", "install", "1.teab"}, {"plugin", "install", "2.teab"}, {"plugin", "install", "3.teab"}},
		args: []string{"plugin", "gc", "--keep", "0"}, either: []string{"3.0.0"}, again: []int{0}, after: "3.0.0", entries: 1,
	},
	{
		name: "remove", before: [][]string{{"plugin", "install", "1.teab"}, {"plugin", "install", "2.teab"}},
		args: []string{"plugin", "remove", "text"}, either: []string{"2.0.0", ""}, again: []int{0, 6}, after: "", entries: 0,
	},
}

// TestKillChangesOfTheStore kills each change of the store at each system call
// that changes the disk. After each kill the plugin has its old or its new
// version, everything in the store is intact, and the same command succeeds and
// leaves nothing behind.
func TestKillChangesOfTheStore(t *testing.T) {
	t.Parallel()
	strace := needStrace(t)
	files := packVersions(t)
	for _, a := range storeAttacks {
		for _, call := range calls {
			t.Run(a.name+"/"+strings.Trim(call, "/^"), func(t *testing.T) {
				t.Parallel()
				n := 1
				for ; ; n++ {
					inject := fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n)
					killed := a.strike(t, files, strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+call, "-e", inject)
					if t.Failed() {
						t.Fatalf("killed at %s number %d", call, n)
					}
					if !killed {
						break
					}
				}
				t.Logf("%d kills", n-1)
			})
		}
	}
}

// packVersions makes the bundles 1.teab to 3.teab.
func packVersions(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, v := range []string{"1", "2", "3"} {
		binary := filepath.Join(dir, "plugin"+v)
		if err := os.WriteFile(binary, []byte("#!/bin/sh\n# version "+v+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(dir, v+bundles.Suffix))
		if err != nil {
			t.Fatal(err)
		}
		_, err = bundles.Pack(f, bundles.Contents{Binaries: []string{binary}, Manifest: sdk.Manifest{
			Name: "text", Version: v + ".0.0", Protocol: sdk.ProtocolVersion, Actions: []sdk.ActionInfo{{Name: "text.run"}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return dir
}

// storeDevice is a device with a store of plugins.
type storeDevice struct {
	*device
	data string
}

func newStoreDevice(t *testing.T, files string) storeDevice {
	t.Helper()
	d := &device{T: t, dir: t.TempDir(), afterStart: func() {}}
	for _, v := range []string{"1", "2", "3"} {
		if err := os.Symlink(filepath.Join(files, v+bundles.Suffix), filepath.Join(d.dir, v+bundles.Suffix)); err != nil {
			t.Fatal(err)
		}
	}
	s := storeDevice{d, filepath.Join(d.dir, "data", "tea")}
	t.Cleanup(func() {
		_ = filepath.WalkDir(s.data, func(path string, d fs.DirEntry, err error) error { // its directories are read-only
			if err == nil && d.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
	})
	return s
}

func (s storeDevice) command(program string, args ...string) *exec.Cmd {
	cmd := s.device.command(program, args...)
	cmd.Env = append(cmd.Env, "XDG_DATA_HOME="+filepath.Dir(s.data), "XDG_CACHE_HOME="+filepath.Join(s.dir, "cache"))
	return cmd
}

// tea runs a command, which must end with one of the exit codes.
func (s storeDevice) tea(want []int, args ...string) string {
	s.Helper()
	code, out := s.run(s.command(tea, args...))
	if !slices.Contains(want, code) {
		s.Fatalf("tea %q: exit code %d, want %v\n%s", args, code, want, out)
	}
	return out
}

// active returns the version that a host would use.
func (s storeDevice) active() string {
	s.Helper()
	var found []struct{ Name, Version string }
	out := s.tea([]int{0}, "plugin", "list", "--json", "-q")
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
	if len(found) == 0 {
		return ""
	}
	return found[0].Version
}

// strike prepares a store, kills the command and looks at what is left. It
// reports whether the command was killed.
func (a storeAttack) strike(t *testing.T, files, program string, args ...string) (killed bool) {
	t.Helper()
	s := newStoreDevice(t, files)
	for _, command := range a.before {
		s.tea([]int{0}, command...)
	}
	code, out := s.run(s.command(program, append(append(args, tea), a.args...)...))
	if code > 0 {
		t.Fatalf("%q: exit code %d\n%s", a.args, code, out)
	}
	if got := s.active(); !slices.Contains(a.either, got) {
		t.Errorf("version %q is active, want one of %q", got, a.either)
	}
	s.tea([]int{0}, "plugin", "verify")
	if code == 0 {
		return false
	}
	s.tea(a.again, a.args...)
	if got := s.active(); got != a.after {
		t.Errorf("version %q is active after the command was repeated, want %q", got, a.after)
	}
	s.tea([]int{0}, "plugin", "verify")
	if a.after == "" {
		s.tea([]int{0}, "plugin", "gc")
	}
	s.wantNoRemains(a.entries)
	return true
}

// wantNoRemains checks that the store has nothing but complete entries.
func (s storeDevice) wantNoRemains(entries int) {
	s.Helper()
	found := 0
	for _, dir := range []string{"store", "plugins", "store/history"} {
		list, err := os.ReadDir(filepath.Join(s.data, dir))
		if err != nil {
			s.Fatal(err)
		}
		for _, e := range list {
			switch name := e.Name(); {
			case name == ".lock" || name == "history" || name == "text.json" || strings.HasPrefix(name, "tea-plugin-"):
			case len(name) == 64:
				found++
			default:
				s.Errorf("%s/%s is left behind", dir, name)
			}
		}
	}
	if found != entries {
		s.Errorf("%d versions are in the store, want %d", found, entries)
	}
}
