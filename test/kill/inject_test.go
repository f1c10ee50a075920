package kill

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// calls are the system calls that change what is on disk, as strace names
// them. A kill comes before the call takes effect, so that all of them together
// leave the disk in every state between two changes.
var calls = []string{"openat", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "/^rename", "/^link", "/^unlink", "/^mkdir"}

// attack is a command that is killed.
type attack struct {
	name string
	// prepare sets up a device up to the attacked command, and returns the command.
	prepare func(d *device) []string
	// settle makes a user's next move after the kill, and reports whether there
	// was a run to go on with.
	settle func(d *device) bool
	// exit is the exit code of the command where it is not killed.
	exit int
}

const stopped = 130 // exit code of a run that waits

var attacks = []attack{
	{
		name:    "run",
		prepare: func(*device) []string { return []string{"run", "pay.yaml", "-c", "runs", "-i", `{"amount": 700}`} },
		settle:  resumeAll,
	},
	{
		name: "run async",
		prepare: func(*device) []string {
			return []string{"run", "pay.yaml", "-c", "runs", "-i", `{"amount": 700}`, "--durability", "async", "--interrupt-before", "order"}
		},
		settle: resumeAll,
		exit:   stopped,
	},
	{
		name: "run exit",
		prepare: func(*device) []string {
			return []string{"run", "pay.yaml", "-c", "runs", "-i", `{"amount": 700}`, "--durability", "exit", "--interrupt-before", "order"}
		},
		settle: resumeAll,
		exit:   stopped,
	},
	{
		name: "resume",
		prepare: func(d *device) []string {
			d.must(stopped, "run", "pay.yaml", "-c", "runs", "-i", `{"amount": 5}`, "--interrupt-before", "p1,q1")
			return []string{"resume", d.runs()[0], "-c", "runs", "-i", `{"amount": 700}`}
		},
		settle: func(d *device) bool {
			run := d.runs()[0]
			if d.status(run) == "waiting" { // nothing was recorded: the command is given again
				d.must(0, "resume", run, "-c", "runs", "-i", `{"amount": 700}`, "-o", "state.json")
				return true
			}
			return resumeAll(d)
		},
	},
	{
		name: "fork",
		prepare: func(d *device) []string {
			d.must(stopped, "run", "pay.yaml", "-c", "runs", "-i", `{"amount": 5}`, "--interrupt-before", "p1,q1")
			if err := os.Rename(filepath.Join(d.dir, "effects"), filepath.Join(d.dir, "effects.base")); err != nil {
				d.Fatal(err)
			}
			d.base = d.runs()[0]
			return []string{"fork", d.base, "--at", "1", "-c", "runs", "-i", `{"amount": 700}`}
		},
		settle: func(d *device) bool {
			if got := d.status(d.base); got != "waiting" {
				d.Errorf("the run that was forked is %s, want waiting", got)
			}
			return resumeAll(d)
		},
	},
	{
		name: "gc",
		prepare: func(d *device) []string {
			for range 3 {
				d.must(0, "run", "pay.yaml", "-c", "runs")
			}
			if err := os.Remove(filepath.Join(d.dir, "effects")); err != nil {
				d.Fatal(err)
			}
			d.must(stopped, "run", "pay.yaml", "-c", "runs", "-i", `{"amount": 700}`, "--interrupt-before", "order")
			return []string{"checkpoint", "gc", "-c", "runs", "--keep", "1"}
		},
		settle: func(d *device) bool {
			d.must(0, "checkpoint", "gc", "-c", "runs", "--keep", "0")
			files, err := filepath.Glob(filepath.Join(d.dir, "runs", "*"))
			if err != nil || len(files) != 2 {
				d.Errorf("files %q, %v; want the journal and the events of the run that waits", files, err)
			}
			return resumeAll(d)
		},
	},
}

// TestKillAtEachSystemCall kills each command at each system call that changes
// the disk, from the first to the last. After each kill there is either no run,
// and nothing was done, or a resume comes to the end of an undisturbed run
// without repeating a node that had finished.
func TestKillAtEachSystemCall(t *testing.T) {
	t.Parallel()
	strace := needStrace(t)
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			want := outcomeWithoutKill(t, a)
			for _, call := range calls {
				t.Run(strings.Trim(call, "/^"), func(t *testing.T) {
					t.Parallel()
					// A number counts the calls of one thread, so that the last
					// one is where the command survives.
					n := 1
					for ; ; n++ {
						killed := a.strike(t, want, func(d *device, args []string) *exec.Cmd {
							inject := fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n)
							return d.command(strace, append([]string{"-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", inject, tea}, args...)...)
						})
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
		})
	}
}

// TestKillAtOnce kills runs in their first 20 ms, or as long as one takes.
func TestKillAtOnce(t *testing.T) {
	t.Parallel()
	a := attacks[0]
	started := time.Now()
	want := outcomeWithoutKill(t, a)
	window := max(20*time.Millisecond, time.Since(started)/2) // it is a run and a resume
	killed := 0
	for seed := range uint64(2 * kills(t)) {
		after := time.Duration(rand.New(rand.NewPCG(seed, 0)).Int64N(int64(window)))
		if a.strike(t, want, func(d *device, args []string) *exec.Cmd {
			cmd := d.command(tea, args...)
			d.afterStart = func() { time.AfterFunc(after, func() { cmd.Process.Kill() }) }
			return cmd
		}) {
			killed++
		}
		if t.Failed() {
			t.Fatalf("killed after %s", after)
		}
	}
	t.Logf("%d kills", killed)
}

// needStrace returns the path of a strace that may trace. Without one, the test is
// skipped, except in CI.
func needStrace(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err == nil {
		err = exec.Command(path, "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "true").Run()
	}
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("strace: %v; `scripts/strace install` installs it", err)
	}
	t.Skipf("skipped: the kills at each system call need strace (`scripts/strace install`) and the right to trace: %v", err)
	return ""
}

// outcome is the final state and the effects by chain.
type outcome struct {
	State   any
	Effects map[string][]string
}

// outcomeWithoutKill is the outcome where the command is not killed.
func outcomeWithoutKill(t *testing.T, a attack) outcome {
	t.Helper()
	d := newDevice(t)
	d.must(a.exit, a.prepare(d)...)
	if !a.settle(d) {
		t.Fatalf("%s: no run is left to look at", a.name)
	}
	return d.outcome(0)
}

// strike runs the command that disturb makes, and looks at what is left. It
// reports whether the command was killed.
func (a attack) strike(t *testing.T, want outcome, disturb func(d *device, args []string) *exec.Cmd) (killed bool) {
	t.Helper()
	d := newDevice(t)
	cmd := disturb(d, a.prepare(d))
	code, out := d.run(cmd)
	switch {
	case code == a.exit:
	case code < 0:
		killed = true
	default:
		t.Fatalf("%q: exit code %d\n%s", cmd.Args, code, out)
	}
	if !a.settle(d) {
		if _, err := os.Stat(filepath.Join(d.dir, "effects")); err == nil || !killed {
			t.Errorf("there is no run, and something was done: %v", err)
		}
		return killed
	}
	// Two branches may have been at work.
	if diff := cmp.Diff(want, d.outcome(2)); diff != "" {
		t.Errorf("the outcome differs from an undisturbed run's (-want +got):\n%s", diff)
	}
	return killed
}

// device is a directory with workflows and runs.
type device struct {
	*testing.T
	dir string
	// base is a run that the command leaves alone.
	base       string
	afterStart func()
}

func newDevice(t *testing.T) *device {
	t.Helper()
	d := &device{T: t, dir: t.TempDir(), afterStart: func() {}}
	if err := os.CopyFS(d.dir, os.DirFS("testdata/effects")); err != nil {
		t.Fatal(err)
	}
	return d
}

// command is a program on the device. With one processor most system calls are
// made by one thread, whose calls strace counts.
func (d *device) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "HOME="+d.dir, "XDG_STATE_HOME=", "GOMAXPROCS=1")
	return cmd
}

// run returns the exit code, which is -1 for a command that was killed.
func (d *device) run(cmd *exec.Cmd) (code int, output string) {
	d.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	d.afterStart()
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status := exit.Sys().(syscall.WaitStatus); status.Signaled() && status.Signal() != syscall.SIGKILL {
			d.Fatalf("%q: %v", cmd.Args, err)
		}
		return exit.ExitCode(), out.String()
	}
	if err != nil {
		d.Fatal(err)
	}
	return 0, out.String()
}

func (d *device) must(want int, args ...string) {
	d.Helper()
	d.afterStart = func() {}
	if code, out := d.run(d.command(tea, args...)); code != want {
		d.Fatalf("tea %q: exit code %d, want %d\n%s", args, code, want, out)
	}
}

// runs are the ids of the device's runs except the base.
func (d *device) runs() []string {
	d.Helper()
	paths, err := filepath.Glob(filepath.Join(d.dir, "runs", "*.tea"))
	if err != nil {
		d.Fatal(err)
	}
	var ids []string
	for _, path := range paths {
		if id := strings.TrimSuffix(filepath.Base(path), ".tea"); id != d.base {
			ids = append(ids, id)
		}
	}
	return ids
}

// status is what `tea runs` says of a run.
func (d *device) status(run string) string {
	d.Helper()
	out, err := d.command(tea, "runs", "-c", "runs", "--json").Output()
	if err != nil {
		d.Fatal(err)
	}
	var list []struct{ ID, Status, Problem string }
	if err := json.Unmarshal(out, &list); err != nil {
		d.Fatal(err)
	}
	for _, r := range list {
		if r.Problem != "" {
			d.Errorf("run %s: %s", r.ID, r.Problem)
		}
		if r.ID == run {
			return r.Status
		}
	}
	return ""
}

// resumeAll resumes the device's run, if there is one, as a user would who
// knows of nothing else.
func resumeAll(d *device) bool {
	runs := d.runs()
	switch len(runs) {
	case 0:
		return false
	case 1:
		d.must(0, "resume", runs[0], "-c", "runs", "-o", "state.json")
		return true
	}
	d.Fatalf("runs %q, want one", runs)
	return false
}

// outcome reads what was done. Within a chain only the node that was running
// may have been repeated, and all in all no more than so many.
func (d *device) outcome(repeated int) outcome {
	d.Helper()
	var o outcome
	raw, err := os.ReadFile(filepath.Join(d.dir, "state.json"))
	if err == nil {
		err = json.Unmarshal(raw, &o.State)
	}
	if err != nil {
		d.Fatal(err)
	}
	raw, err = os.ReadFile(filepath.Join(d.dir, "effects"))
	if err != nil {
		d.Fatal(err)
	}
	o.Effects = map[string][]string{}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	for _, line := range lines {
		chain, rest, _ := strings.Cut(line, " ")
		o.Effects[chain] = append(o.Effects[chain], rest)
	}
	once := 0
	for chain, steps := range o.Effects {
		o.Effects[chain] = slices.Compact(steps)
		once += len(o.Effects[chain])
	}
	if len(lines) > once+repeated {
		d.Errorf("%d effects, want %d and at most %d that were repeated:\n%s", len(lines), once, repeated, raw)
	}
	return o
}
