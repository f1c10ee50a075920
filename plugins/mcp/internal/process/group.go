package process

import (
	"crypto/rand"
	"os"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/sdk/x/childproc"
)

// markName is the variable that identifies the processes of a group.
const markName = "TEA_MCP_SERVERS"

// Group is a set of processes that end with this process, however it ends. It is
// safe for concurrent use. The caller closes it after its processes have ended.
type Group struct {
	mark string

	mu    sync.Mutex
	guard *childproc.Guard // nil before the first process, or without a shell
}

// NewGroup returns an empty group.
func NewGroup() *Group { return &Group{mark: markName + "=" + rand.Text()} }

// watch returns the guard, and starts it on first use.
func (g *Group) watch() (_ *childproc.Guard, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.guard == nil && childproc.HasGroups {
		// Killing the process group does not reach servers that have left it; the guard
		// does.
		g.guard, err = childproc.StartGuard(childproc.GuardOptions{Name: "tea-mcp-guard", Mark: g.mark, Always: true})
	}
	return g.guard, err
}

// Close kills processes that have left their process group, and ends the guard.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guard.Close()
	g.guard = nil
}

// passed are the variables of this process that servers get.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEA_PLUGIN_PROCESS", "SYSTEMROOT", "TEMP", "APPDATA", "PATHEXT"}

// environ returns the environment of a server. The mark comes first, because grep stops
// at the first zero byte.
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
