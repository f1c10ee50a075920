package childproc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// guardScript reads the process groups that start (+) and end (-). When the owner closes
// its end of the pipe or dies, the script kills the remaining groups, all processes in the
// control groups whose paths begin with the second argument, and the processes with the
// mark, the first argument, in their environment, which have left their process group.
const guardScript = `groups=
while read -r op id; do
	rest=
	for g in $groups; do [ "$g" = "$id" ] || rest="$rest $g"; done
	groups=$rest
	[ "$op" = + ] && groups="$groups $id"
done
[ "$groups$3" ] || exit 0
[ "$2" ] && for d in "$2"*; do echo 1 >"$d/cgroup.kill"; done
for g in $groups; do kill -9 "-$g"; done
[ -r /proc/self/environ ] || exit 0
for round in 1 2 3; do
	found=
	for f in $(grep -lF "$1" /proc/[0-9]*/environ); do
		p=${f#/proc/}
		kill -9 "${p%/environ}" && found=1
	done
	[ "$found" ] || exit 0
done`

// GuardOptions are the options of a [Guard].
type GuardOptions struct {
	// Name is the name of the guard's process.
	Name string
	// Mark is an entry of the processes' environment, NAME=VALUE. It must be the
	// first one, where a grep that stops at a zero byte finds it.
	Mark string
	// ControlGroups is the prefix of the paths of the processes' control groups; can be empty.
	ControlGroups string
	// Always makes the guard search for the mark even if all groups have ended.
	Always bool
}

// Guard is a small process that outlives its owner and kills the owner's child processes
// when the owner has ended in any way. The kernel's parent-death signal kills only the
// child itself, before it can end its own child processes.
//
// The guard needs a Unix shell. The nil Guard does nothing. A Guard is safe for
// concurrent use.
type Guard struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser
}

// StartGuard starts a guard. The caller closes it. After an error, processes may outlive
// an owner that is killed.
func StartGuard(o GuardOptions) (*Guard, error) {
	always := ""
	if o.Always {
		always = "always"
	}
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: []string{o.Name, "-c", guardScript, o.Name, o.Mark, o.ControlGroups, always},
		Dir: "/", Env: []string{},
	}
	detach(attributes(cmd)) // the owner handles Ctrl-C and a hang-up
	in, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	cmd.Stdin = in
	err = cmd.Start()
	in.Close()
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	return &Guard{cmd: cmd, pipe: out}, nil
}

// Add registers a process group to be killed when the owner has ended.
func (g *Guard) Add(group int) { g.send('+', group) }

// Forget must be called before the number of the group can be reused.
func (g *Guard) Forget(group int) { g.send('-', group) }

func (g *Guard) send(op rune, group int) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	fmt.Fprintf(g.pipe, "%c %d\n", op, group) // if the guard has died, children still watch the owner
}

// Close ends the guard, which kills the remaining processes.
func (g *Guard) Close() {
	if g == nil {
		return
	}
	g.pipe.Close()
	_ = g.cmd.Wait() // its exit code does not matter
}
