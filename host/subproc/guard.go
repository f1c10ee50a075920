package subproc

import "github.com/the-edge-agent/tea/sdk/x/childproc"

// processMark names the variable with the mark of a plugin's process, which the
// processes that it starts inherit. It is the first in the environment, where a
// grep that stops at a zero byte finds it.
const processMark = "TEA_PLUGIN_PROCESS"

// startGuard starts the guard of all plugins. Without a shell there is none;
// plugins still end by the parent-death signal and by watching the host themselves.
func startGuard(mark string, c *cgroups) (*childproc.Guard, error) {
	o := childproc.GuardOptions{Name: "tea-plugin-guard", Mark: mark}
	if c != nil {
		o.ControlGroups = c.prefix
	}
	return childproc.StartGuard(o)
}
