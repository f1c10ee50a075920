package storetest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// ownMounts is set in a process with a separate mount namespace.
const ownMounts = "TEA_TEST_OWN_MOUNTS"

// OwnMounts runs the calling test again in a process with a separate mount
// namespace. It returns true there, and false here, where the test must return.
// Without permission for that the test is skipped.
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

// Disk is a small file system for tests. It is not safe for concurrent use.
type Disk struct{ Dir string }

// NewDisk mounts an empty disk of a size until the end of the test, which must
// run in the process of [OwnMounts].
func NewDisk(t *testing.T, size string) *Disk {
	t.Helper()
	d := &Disk{Dir: t.TempDir()}
	if err := syscall.Mount("none", d.Dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.Dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Fill fills the disk.
func (d *Disk) Fill(t *testing.T) {
	t.Helper()
	f, err := os.Create(filepath.Join(d.Dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 4096} {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
}

// Free removes the data of Fill.
func (d *Disk) Free(t *testing.T) {
	t.Helper()
	if err := os.Remove(filepath.Join(d.Dir, "filler")); err != nil {
		t.Fatal(err)
	}
}

// Protect makes the disk read-only, or writable again.
func (d *Disk) Protect(t *testing.T, on bool) {
	t.Helper()
	flags := uintptr(syscall.MS_REMOUNT)
	if on {
		flags |= syscall.MS_RDONLY
	}
	if err := syscall.Mount("none", d.Dir, "tmpfs", flags, ""); err != nil {
		t.Fatal(err)
	}
}
