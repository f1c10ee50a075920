package wire

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// PassParent makes a command inherit the read end of the pipe by which it notices the end of
// its host. It returns the variable for the command's environment, with a handle instead of a
// descriptor. Without the handle, the command watches its parent instead.
func PassParent(cmd *exec.Cmd, pipe *os.File) string {
	handle := syscall.Handle(pipe.Fd())
	if syscall.SetHandleInformation(handle, syscall.HANDLE_FLAG_INHERIT, syscall.HANDLE_FLAG_INHERIT) != nil {
		return ParentFD + "="
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.AdditionalInheritedHandles = append(cmd.SysProcAttr.AdditionalInheritedHandles, handle)
	return ParentFD + "=" + strconv.FormatUint(uint64(handle), 10)
}
