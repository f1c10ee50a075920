package process

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// script reads the process groups that start (+) and end (-). At the end of its
// input, when the owner has closed the group or has died, it kills the groups
// that are left and the processes with the mark in their environment, which have
// left their process group.
const script = `groups=
while read -r op id; do
	rest=
	for g in $groups; do [ "$g" = "$id" ] || rest="$rest $g"; done
	groups=$rest
	[ "$op" = + ] && groups="$groups $id"
done
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

// markName names the variable by which the processes of a group are found.
const markName = "TEA_MCP_SERVERS"

// Group is a set of processes that end with this one, however it ends. It is
// safe for concurrent use. The caller closes it after its processes have ended.
type Group struct {
	mark string

	mu    sync.Mutex
	guard *exec.Cmd // nil before the first process, or without a shell
	pipe  io.WriteCloser
}

// NewGroup returns an empty group.
func NewGroup() *Group { return &Group{mark: markName + "=" + rand.Text()} }

// watch starts the guard, a small shell that outlives this process.
func (g *Group) watch() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.guard != nil || !hasGuard {
		return nil
	}
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: []string{"tea-mcp-guard", "-c", script, "tea-mcp-guard", g.mark},
		Dir: "/", Env: []string{}, SysProcAttr: detached(),
	}
	in, out, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the guard of MCP servers: %w", err)
	}
	cmd.Stdin = in
	err = cmd.Start()
	in.Close()
	if err != nil {
		out.Close()
		return fmt.Errorf("start the guard of MCP servers: %w", err)
	}
	g.guard, g.pipe = cmd, out
	return nil
}

func (g *Group) send(op rune, pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe != nil {
		fmt.Fprintf(g.pipe, "%c %d\n", op, pid) // if the guard has died, servers still see the end of their input
	}
}

// Close kills the processes that have left their process group and ends the
// guard.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.guard == nil {
		return
	}
	g.pipe.Close()
	_ = g.guard.Wait() // its exit code has no meaning
	g.guard, g.pipe = nil, nil
}

// passed are the variables of this process that a server gets.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEA_PLUGIN_PROCESS", "SYSTEMROOT", "TEMP", "APPDATA", "PATHEXT"}

// environ returns the environment of a server. The mark is the first variable,
// where a grep that stops at a zero byte finds it.
func (g *Group) environ(own map[string]string) []string {
	env := []string{g.mark}
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok && !has(own, name) {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range own {
		if !strings.EqualFold(name, markName) {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func has(m map[string]string, name string) bool {
	_, ok := m[name]
	return ok
}
