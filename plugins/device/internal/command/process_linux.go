package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// execute runs a command with the rights that the settings leave it, and reports
// whether it has started. It is killed with its group, and with this process.
func (c Command) execute(cmd *exec.Cmd) (started bool, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c.User != "" {
		if cmd.SysProcAttr.Credential, err = credential(c.User); err != nil {
			return false, err
		}
	}
	if c.NoNetwork {
		withoutNetwork(cmd.SysProcAttr)
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	type end struct {
		started bool
		err     error
	}
	ended := make(chan end, 1)
	go func() {
		// The restriction belongs to the thread, which ends with this goroutine. It waits for the command, because the
		// kernel kills the command when the thread ends.
		runtime.LockOSThread()
		started, err := c.restricted(cmd)
		ended <- end{started, err}
	}()
	e := <-ended
	return e.started, e.err
}

// restricted runs a command on a dedicated thread.
func (c Command) restricted(cmd *exec.Cmd) (started bool, err error) {
	if !c.NewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return false, fmt.Errorf("restrict its rights: %w", err)
		}
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	if err = cmd.Wait(); errors.Is(err, exec.ErrWaitDelay) {
		_ = cmd.Cancel() // something that it has started holds its outputs
	}
	return true, err
}

// credential returns the identity of a user.
func credential(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	out := &syscall.Credential{}
	for i, id := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, err
		}
		switch i {
		case 0:
			out.Uid = uint32(n)
		case 1:
			out.Gid = uint32(n)
		default:
			out.Groups = append(out.Groups, uint32(n))
		}
	}
	return out, nil
}

// withoutNetwork starts the command in a network namespace that has no devices. Users
// other than root need a user namespace for it.
func withoutNetwork(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= syscall.CLONE_NEWNET
	if uid := os.Geteuid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
}
