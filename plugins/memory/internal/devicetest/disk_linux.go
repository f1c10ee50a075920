package devicetest

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
)

// ownMounts is set in a process with a separate mount namespace.
const ownMounts = "TEA_TEST_OWN_MOUNTS"

// OwnMounts runs the calling test again in a process with a separate mount
// namespace. It returns true there, and false in the caller, whose test must
// return. It skips the test if it lacks the permission.
func OwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownMounts) != "" {
		// Later mounts are not visible to other processes.
		if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return true
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	output, err := cmd.CombinedOutput()
	if refused := new(exec.ExitError); err != nil && !errors.As(err, &refused) {
		t.Skipf("the test needs a mount namespace: %v", err)
	}
	t.Logf("%s", output)
	if err != nil {
		t.Error(err)
	}
	return false
}
