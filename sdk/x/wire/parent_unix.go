//go:build unix

package wire

import (
	"os"
	"os/exec"
	"strconv"
)

// PassParent makes a command inherit the read end of the pipe by which it notices the end of
// its host. It returns the variable for the command's environment.
func PassParent(cmd *exec.Cmd, pipe *os.File) string {
	cmd.ExtraFiles = append(cmd.ExtraFiles, pipe)
	return ParentFD + "=" + strconv.Itoa(2+len(cmd.ExtraFiles)) // after the standard files
}
