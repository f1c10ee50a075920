//go:build linux

package teacmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// greets greets until the plugin says something else than Hello.
const greets = `
config: {max_steps: 1000000}
nodes:
  - {name: hello, uses: greet.hello, with: {name: Ada}}
  - name: pause
    uses: time.sleep
    with: {seconds: 0.01}
    goto:
      - {if: "state.text == 'Hello, Ada'", to: hello}
      - to: END
`

// putGreeter puts a version of the plugin greet into a directory.
func putGreeter(t *testing.T, dir, greeting string) {
	t.Helper()
	binary, err := exec.LookPath("tea-plugin-greet")
	if err != nil {
		t.Fatal(err)
	}
	putPlugin(t, dir, fmt.Sprintf("#!/bin/sh\nGREETING=%q exec %s\n", greeting, binary))
}

func putPlugin(t *testing.T, dir, content string) {
	t.Helper()
	file := filepath.Join(dir, "new")
	if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, filepath.Join(dir, "tea-plugin-greet")); err != nil {
		t.Fatal(err)
	}
}

// startGreeting starts the workflow and waits until the plugin has answered.
func startGreeting(t *testing.T) (p *process, plugins string) {
	t.Helper()
	dir, plugins := workdir(t, map[string]string{"flow.yaml": greets}), t.TempDir()
	putGreeter(t, plugins, "Hello, ")
	p = start(t, dir, "run", "-s", "-v", "flow.yaml", "--plugins", plugins)
	p.until("node_end", "hello")
	return p, plugins
}

func TestRunUsesAPluginThatIsReplaced(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it replaces processes again and again")
	p, plugins := startGreeting(t)
	putGreeter(t, plugins, "Bonjour, ")
	rest, code := p.exit()
	if code != 0 || !strings.Contains(rest, "Bonjour, Ada") {
		t.Errorf("exit code %d, stderr:\n%s", code, &p.stderr)
	}
}

func TestHangUpReplacesPlugins(t *testing.T) {
	t.Parallel()
	p, plugins := startGreeting(t)
	putPlugin(t, plugins, "#!/bin/sh\necho the disk is full\nexit 1\n")
	p.signal(syscall.SIGHUP)
	p.until("node_end", "hello#30")
	putGreeter(t, plugins, "Bonjour, ")
	p.signal(syscall.SIGHUP)
	rest, code := p.exit()
	if code != 0 || !strings.Contains(rest, "Bonjour, Ada") {
		t.Errorf("exit code %d, stderr:\n%s", code, &p.stderr)
	}
	if want := "the plugin was replaced"; !strings.Contains(p.stderr.String(), want) {
		t.Errorf("stderr lacks %q:\n%s", want, &p.stderr)
	}
}

// counts runs until the plugin has had version 2, and then version 1.
const counts = `
config: {max_steps: 1000000}
nodes:
  - name: until_two
    uses: counter.version
    goto:
      - {if: "state.version != 2", to: pause}
      - to: until_one
  - name: until_one
    uses: counter.version
    goto:
      - {if: "state.version != 1", to: until_one}
      - to: END
  - name: pause
    uses: time.sleep
    with: {seconds: 0.01}
    goto: until_two
`

// mustRun runs a tea command that must succeed.
func mustRun(t *testing.T, dir string, args ...string) {
	t.Helper()
	p := start(t, dir, args...)
	if out, code := p.exit(); code != 0 {
		t.Fatalf("tea %s exits with %d:\n%s%s", strings.Join(args, " "), code, out, &p.stderr)
	}
}

// packCounter makes the bundles of two versions.
func packCounter(t *testing.T, dir string) {
	t.Helper()
	for _, version := range []string{"1", "2"} {
		folder := filepath.Join(dir, "counter"+version)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, script := range map[string]string{"counter": "exec \"$(dirname \"$0\")/impl.sh\"", "impl.sh": "exec counter-plugin " + version} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		mustRun(t, dir, "plugin", "pack", filepath.Join(folder, "counter"), "-o", version+".teab")
	}
}

func TestRunUsesAVersionThatIsInstalledAndRolledBack(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it replaces processes again and again")
	for name, locked := range map[string]bool{"free": false, "locked": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := workdir(t, map[string]string{"flow.yaml": counts})
			lock := func() {
				if locked {
					mustRun(t, dir, "plugin", "lock")
				}
			}
			packCounter(t, dir)
			mustRun(t, dir, "plugin", "install", "1.teab")
			lock()
			p := start(t, dir, "run", "-s", "-v", "flow.yaml")
			p.until("node_end", "until_two#20")
			mustRun(t, dir, "plugin", "install", "2.teab")
			lock()
			p.until("node_end", "until_one")
			mustRun(t, dir, "plugin", "rollback", "counter")
			lock()
			if _, code := p.exit(); code != 0 {
				t.Errorf("exit code %d, stderr:\n%s", code, &p.stderr)
			}
		})
	}
}

// terminal returns the two ends of a new terminal.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func TestEndOfTheTerminalStopsTheRun(t *testing.T) {
	t.Parallel()
	dir := workdir(t, map[string]string{"flow.yaml": sleeper})
	args := []string{"-c", "runs", "--durability", "async"}
	master, slave := terminal(t)
	p := startWith(t, dir, func(cmd *exec.Cmd) {
		cmd.Stdin = slave
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	}, append([]string{"run", "-s", "flow.yaml"}, args...)...)
	slave.Close()
	p.until("node_start", "nap")
	p.signal(syscall.SIGHUP) // the terminal is still there
	master.Close()
	_ = p.cmd.Process.Signal(syscall.SIGHUP) // as the shell does, unless the run has ended already
	if _, code := p.exit(); code != 130 {
		t.Errorf("exit code = %d, want 130", code)
	}
	if want := "stopped by SIGHUP"; !strings.Contains(p.stderr.String(), want) {
		t.Errorf("stderr lacks %q:\n%s", want, &p.stderr)
	}
	resume(t, dir, args...)
}
