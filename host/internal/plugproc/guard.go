package plugproc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// guardScript reads the process groups that run, and those that have ended,
// until the host closes its end of the pipe or dies, and kills what is left.
const guardScript = `groups=
while read -r op id; do
	rest=
	for g in $groups; do [ "$g" = "$id" ] || rest="$rest $g"; done
	groups=$rest
	[ "$op" = + ] && groups="$groups $id"
done
for g in $groups; do kill -9 "-$g"; done`

// guard is a small process that outlives the host and kills the plugins'
// process groups when the host is gone, however it ended. The kernel's
// parent-death signal reaches a plugin alone, and that at once, so that the
// plugin has no moment left for the processes that it has started.
//
// Where there is no shell there is no guard: plugins still end by the
// parent-death signal and their own watch of the host. The nil guard does
// nothing. A guard is safe for concurrent use.
type guard struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser
}

func newGuard() (*guard, error) {
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: []string{"tea-plugin-guard", "-c", guardScript},
		Dir: "/", Env: []string{},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // Ctrl-C and a hang-up are for the host
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the guard of plugins: %w", err)
	}
	cmd.Stdin = in
	err = cmd.Start()
	in.Close()
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("start the guard of plugins: %w", err)
	}
	return &guard{cmd: cmd, pipe: out}, nil
}

// add has a group killed when the host is gone.
func (g *guard) add(group int) { g.send('+', group) }

// forget must be called before the group's number can be another's.
func (g *guard) forget(group int) { g.send('-', group) }

func (g *guard) send(op rune, group int) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	fmt.Fprintf(g.pipe, "%c %d\n", op, group) // a guard that is gone cannot be helped
}

// close ends the guard. No group that it has may run any more.
func (g *guard) close() {
	if g == nil {
		return
	}
	g.pipe.Close()
	_ = g.cmd.Wait() // its exit code says nothing
}
