package plugproc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// guardScript reads the process groups that start (+) and end (-). When the
// host closes its end of the pipe or dies, it kills the groups that are left,
// all processes in the plugins' control groups (the second argument begins their
// paths), and the processes that have the host's mark (the first) in their
// environment: those have left their process group.
const guardScript = `groups=
while read -r op id; do
	rest=
	for g in $groups; do [ "$g" = "$id" ] || rest="$rest $g"; done
	groups=$rest
	[ "$op" = + ] && groups="$groups $id"
done
[ "$groups" ] || exit 0
[ "$2" ] && for d in "$2"*; do echo 1 >"$d/cgroup.kill"; done
for g in $groups; do kill -9 "-$g"; done
for round in 1 2 3; do
	for f in $(grep -lF "$1" /proc/[0-9]*/environ); do
		p=${f#/proc/}
		kill -9 "${p%/environ}"
	done
done`

// processMark names the variable with the mark of a plugin's process, which the
// processes that it starts inherit. It is the first in the environment, where a
// grep that stops at a zero byte finds it.
const processMark = "TEA_PLUGIN_PROCESS"

// guard is a small process that outlives the host and kills the plugins'
// processes when the host has ended in any way. The kernel's parent-death
// signal kills only the plugin itself, before it can end the processes that it
// has started.
//
// Without a shell there is no guard; plugins still end by the parent-death
// signal and by watching the host themselves. The nil guard does nothing. A
// guard is safe for concurrent use.
type guard struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser
}

func newGuard(mark string, c *cgroups) (*guard, error) {
	groups := ""
	if c != nil {
		groups = c.prefix
	}
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: []string{"tea-plugin-guard", "-c", guardScript, "tea-plugin-guard", mark, groups},
		Dir: "/", Env: []string{},
		SysProcAttr: detached(), // the host handles Ctrl-C and a hang-up
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

// add registers a group to be killed when the host has ended.
func (g *guard) add(group int) { g.send('+', group) }

// forget must be called before the number of the group can be reused.
func (g *guard) forget(group int) { g.send('-', group) }

func (g *guard) send(op rune, group int) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	fmt.Fprintf(g.pipe, "%c %d\n", op, group) // the guard has died; plugins still watch the host
}

// close ends the guard. None of its groups can be running.
func (g *guard) close() {
	if g == nil {
		return
	}
	g.pipe.Close()
	_ = g.cmd.Wait() // its exit code has no meaning
}
