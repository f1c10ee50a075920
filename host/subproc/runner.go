package subproc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/childproc"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// afterExit bounds the time for which the output of an ended process is still read: a
// child process that it left behind can hold the pipes open.
const afterExit = 500 * time.Millisecond

// runner is one process, as go-plugin's runner.Runner. It starts the process, reads all
// of its output, and passes only the handshake line to go-plugin, which stops reading at
// the first line that is too long and thereby blocks the plugin.
type runner struct {
	name string
	path string
	// command is the file to execute: path, or the same binary elsewhere.
	command string
	env     []string // without go-plugin's additions
	forker  *forker
	guard   *childproc.Guard
	output  *output
	limits  Limits
	args    []string
	mark    string // in the environment of the process and its children
	cgroups *cgroups
	cgroup  *cgroup // of the process; can be nil

	cmd    *exec.Cmd
	group  *group   // set before pid
	parent *os.File // open while the host runs
	exited chan struct{}
	state  *os.ProcessState // set before exited is closed

	line     *io.PipeReader // where go-plugin reads the handshake
	lineDone *io.PipeWriter

	pid         atomic.Int64              // 0 before the start
	killed      atomic.Bool               // Kill was called, possibly before the start
	ended       atomic.Bool               // the process number can be reused
	outOfMemory atomic.Bool               // the kernel has enforced the memory limit
	greeted     atomic.Bool               // the handshake was valid
	failure     atomic.Pointer[tea.Error] // why it did not start, if known
}

func newRunner(name, path, command string, env []string, f *forker, g *childproc.Guard, o *output) *runner {
	r := &runner{name: name, path: path, command: command, env: env, forker: f, guard: g, output: o, exited: make(chan struct{})}
	r.line, r.lineDone = io.Pipe()
	return r
}

func (r *runner) Start(ctx context.Context) error {
	stdout, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	stderr, errW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdout.Close(), outW.Close())
	}
	watched, parent, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdout.Close(), outW.Close(), stderr.Close(), errW.Close())
	}
	r.cmd = &exec.Cmd{
		Path: r.command, Args: append([]string{r.path}, r.args...),
		Stdout: outW,
		Stderr: errW,
	}
	childproc.Group(r.cmd)
	childproc.EndWithParent(r.cmd)
	r.cmd.Env = append([]string{r.mark, wire.PassParent(r.cmd, watched)}, r.env...)
	r.limits.wrap(r.cmd)
	r.cgroup = r.cgroups.add(r.name, r.limits)
	r.cgroup.admit(r.cmd.SysProcAttr)
	err = r.forker.start(r.cmd.Start)
	outW.Close()
	errW.Close()
	watched.Close()
	if err != nil {
		stdout.Close()
		stderr.Close()
		parent.Close()
		r.cgroup.remove()
		return r.fail(wire.CannotExecute(err))
	}
	r.parent, r.group = parent, newGroup(r.cmd.Process)
	r.pid.Store(int64(r.cmd.Process.Pid))
	r.guard.Add(r.cmd.Process.Pid)
	if err := r.limits.apply(r.cmd.Process.Pid); err != nil && !errors.Is(err, syscall.ESRCH) {
		r.output.logger.Warn("a limit of the plugin cannot be set", "error", err)
	}
	r.follow(stdout, stderr)
	if r.killed.Load() {
		return r.Kill(ctx)
	}
	return nil
}

// follow reads the output and waits for the end of the process.
func (r *runner) follow(stdout, stderr *os.File) {
	var reading sync.WaitGroup
	reading.Go(func() { r.readStdout(bufio.NewReaderSize(stdout, wire.MaxHandshake)) })
	reading.Go(func() { r.output.read("stderr", bufio.NewReaderSize(stderr, 16<<10)) })
	go func() {
		if !awaitExit(int(r.pid.Load())) {
			_ = r.cmd.Wait() // reaps it; its id is free slightly too early
		}
		r.group.kill() // and its remaining child processes
		r.outOfMemory.Store(r.cgroup.exhausted())
		r.cgroup.kill()
		r.cgroup.remove()
		killStrays(int(r.pid.Load()), r.mark)
		r.guard.Forget(int(r.pid.Load()))
		r.ended.Store(true)
		_ = r.cmd.Wait()
		late := time.AfterFunc(afterExit, func() {
			stdout.Close()
			stderr.Close()
		})
		reading.Wait()
		late.Stop()
		stdout.Close()
		stderr.Close()
		r.parent.Close()
		r.group.close()
		r.state = r.cmd.ProcessState
		close(r.exited)
	}()
}

// readStdout passes a valid handshake to go-plugin; everything after it is normal
// output.
func (r *runner) readStdout(stdout *bufio.Reader) {
	// The buffer bounds the line: endless output is not a handshake.
	first, err := stdout.ReadSlice('\n')
	line := strings.ToValidUTF8(strings.TrimSpace(string(first)), "\ufffd")
	switch bad := wire.CheckHandshake(line); {
	case line == "" && err != nil: // it ended without output; its exit status is more informative
	case bad != nil:
		_ = r.fail(bad) // the start ends with it
		r.output.add("stdout", line)
	default:
		r.greeted.Store(true)
		_, _ = io.WriteString(r.lineDone, line+"\n") // go-plugin reads, or has given up
	}
	_ = r.lineDone.Close() // a pipe in memory
	r.output.read("stdout", stdout)
}

// fail sets and returns the failure of the start.
func (r *runner) fail(reason *wire.StartError) error {
	failure := startError(r.name, reason.Type, "%w", reason)
	r.failure.Store(failure)
	return failure
}

// started reports whether there is, or was, a process.
func (r *runner) started() bool { return r.pid.Load() != 0 }

func (r *runner) Wait(context.Context) error {
	<-r.exited
	return nil
}

// Kill kills the process and its group.
func (r *runner) Kill(context.Context) error {
	r.killed.Store(true)
	if r.started() && !r.ended.Load() {
		r.group.kill()
	}
	return r.line.Close()
}

// Stdout returns the handshake line.
func (r *runner) Stdout() io.ReadCloser { return r.line }

// Stderr is empty: the runner reads stderr itself.
func (r *runner) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

func (r *runner) Name() string { return r.path }

// ID returns the process id; "" before the start.
func (r *runner) ID() string {
	if !r.started() {
		return ""
	}
	return strconv.FormatInt(r.pid.Load(), 10)
}

// Diagnose returns nothing: the runner records the reason itself.
func (r *runner) Diagnose(context.Context) string { return "" }

// PluginToHost returns addresses unchanged.
func (r *runner) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

// HostToPlugin returns addresses unchanged.
func (r *runner) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// forker starts processes from one dedicated thread. The kernel ties the parent-death
// signal to the thread that forked, not to the process: if a thread of the scheduler's
// pool forked, plugins would be killed when that thread ends.
type forker struct{ jobs chan func() }

func newForker() *forker {
	f := &forker{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for job := range f.jobs {
			job()
		}
	}()
	return f
}

// start runs fn, which starts a process, on the thread.
func (f *forker) start(fn func() error) error {
	result := make(chan error, 1)
	f.jobs <- func() { result <- fn() }
	return <-result
}

// close ends the thread, and thereby the processes that it has started.
func (f *forker) close() { close(f.jobs) }
