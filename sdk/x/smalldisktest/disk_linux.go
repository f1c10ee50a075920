package smalldisktest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Disk is a small file system. It is not safe for concurrent use.
type Disk struct {
	// Dir is the mount point.
	Dir string
}

// New mounts an empty disk of a size, such as "64k", until the end of the test. Without
// permission to mount, the test is skipped; CI has it.
func New(t testing.TB, size string) *Disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	d := &Disk{Dir: t.TempDir()}
	if err := syscall.Mount("tmpfs", d.Dir, "tmpfs", 0, "size="+size); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("mount a small disk: %v", err)
		}
		t.Skipf("mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.Dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", d.Dir, err)
		}
	})
	return d
}

const filler = "filler"

// Fill fills the disk up to a number of free bytes.
func (d *Disk) Fill(t testing.TB, free int64) {
	t.Helper()
	f, err := os.Create(filepath.Join(d.Dir, filler))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	written := int64(0)
	for size := 1 << 20; size > 0; size /= 4 {
		for err = nil; err == nil; {
			var n int
			n, err = f.Write(make([]byte, size))
			written += int64(n)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(max(0, written-free)); err != nil {
		t.Fatal(err)
	}
}

// Free removes the data that Fill has written.
func (d *Disk) Free(t testing.TB) {
	t.Helper()
	if err := os.Remove(filepath.Join(d.Dir, filler)); err != nil {
		t.Fatal(err)
	}
}

// Resize changes the size.
func (d *Disk) Resize(t testing.TB, size string) { d.remount(t, 0, "size="+size) }

// Protect makes the disk read-only, or writable again.
func (d *Disk) Protect(t testing.TB, on bool) {
	if on {
		d.remount(t, syscall.MS_RDONLY, "")
	} else {
		d.remount(t, 0, "")
	}
}

func (d *Disk) remount(t testing.TB, flags uintptr, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", d.Dir, "tmpfs", syscall.MS_REMOUNT|flags, options); err != nil {
		t.Fatal(err)
	}
}
