//go:build !linux

package command

import (
	"errors"
	"os/exec"
)

// execute runs a command, and reports whether it has started. It has the rights of tea, and only the command itself is
// killed.
func (c Command) execute(cmd *exec.Cmd) (started bool, err error) {
	if c.User != "" || c.NoNetwork {
		return false, errors.New("user and no_network need Linux")
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	return true, cmd.Wait()
}
