package serve

import (
	"os"
	"syscall"
)

// killGroup does nothing: this system has no process groups. The host's job object
// ends the processes that the plugin has started.
func killGroup() {}

// openParent opens the inherited pipe.
func openParent(handle int) *os.File {
	syscall.CloseOnExec(syscall.Handle(handle))
	return os.NewFile(uintptr(handle), "host")
}
