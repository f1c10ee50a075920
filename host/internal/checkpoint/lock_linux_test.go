package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// childBequeath locks a file and ends, while a process that it started has the
// file open until the end of its stdin.
func childBequeath(path string) int {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = lockFile(f, path)
	}
	if err == nil {
		cat := exec.Command("cat")
		cat.Stdin, cat.ExtraFiles = os.Stdin, []*os.File{f}
		err = cat.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("locked")
	return 0
}

// A process that is killed while it starts another one leaves its lock to it
// until the exec: the next owner waits for that.
func TestLockOfADeadOwnerIsWaitedFor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	c := startChild(t, "bequeath", path)
	c.line(t)
	if _, err := c.cmd.Process.Wait(); err != nil { // stdin stays open
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := setLock(f, lockByte); !errors.Is(err, unix.EAGAIN) {
		t.Fatalf("the lock has ended with its owner: %v", err)
	}
	locked := make(chan error, 1)
	go func() { locked <- lockFile(f, path) }()
	c.stdin.Close()
	if err := <-locked; err != nil {
		t.Error(err)
	}
}
