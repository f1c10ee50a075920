//go:build unix

package subproc

import (
	"os"
	"syscall"
)

// group is the process group of a plugin.
type group struct{ pid int }

// newGroup returns the group that was assigned to a process at its start.
func newGroup(p *os.Process) *group { return &group{p.Pid} }

// kill kills all processes of the group. They may have ended already.
func (g *group) kill() { _ = syscall.Kill(-g.pid, syscall.SIGKILL) }

// close does nothing: a group has no resources.
func (*group) close() {}

// programSuffix is the suffix of the names of programs.
const programSuffix = ""

func isExecutable(info os.FileInfo) bool { return info.Mode().Perm()&0o111 != 0 }
