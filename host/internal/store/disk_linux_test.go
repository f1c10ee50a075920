package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/the-edge-agent/tea/host/internal/store"
)

// mount mounts a small file system.
func mount(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("mount a tmpfs: %v", err)
		}
		t.Skipf("mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// The disk is full at each block that an installation needs, one after the
// other. The old version stays, and nothing of the new one.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := mount(t, "512k")
	s := store.At(filepath.Join(dir, "tea"))
	install(t, s, pack(t, "text", "1.0.0"))
	next := packSized(t, "text", "2.0.0", 2000)
	before := files(t, dir)
	filler := filepath.Join(dir, "filler")
	failures := 0
	for free := 0; ; free++ {
		if free > 100 {
			t.Fatal("the version is never installed")
		}
		fill(t, filler, free)
		_, _, err := s.Install(next, platform, nil)
		if removed := os.Remove(filler); removed != nil {
			t.Fatal(removed)
		}
		if err == nil {
			break
		}
		failures++
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("with %d free blocks: %v; want no space left", free, err)
		}
		wantVersions(t, s, "text: [1.0.0]")
		if diff := cmp.Diff(before, files(t, dir)); diff != "" {
			t.Fatalf("with %d free blocks, files (-before +after):\n%s", free, diff)
		}
		if faults := s.Verify(); len(faults) > 0 {
			t.Errorf("with %d free blocks: %v", free, faults)
		}
	}
	wantVersions(t, s, "text: 1.0.0 [2.0.0]")
	if failures < 5 {
		t.Errorf("only %d installations failed", failures)
	}
}

// fill fills the disk except for some blocks.
func fill(t *testing.T, path string, free int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	size := int64(0)
	for {
		n, err := f.Write(block)
		if err != nil || n < len(block) {
			break
		}
		size += int64(n)
	}
	if err := f.Truncate(max(0, size-int64(free)*4096)); err != nil {
		t.Fatal(err)
	}
}

func TestReadOnlyStore(t *testing.T) {
	t.Parallel()
	dir := mount(t, "512k")
	s := store.At(filepath.Join(dir, "tea"))
	e := install(t, s, pack(t, "text", "1.0.0"))
	install(t, s, pack(t, "text", "2.0.0"))
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	wantVersions(t, s, "text: 1.0.0 [2.0.0]")
	if faults := s.Verify(); len(faults) > 0 {
		t.Error(faults)
	}
	if found, err := s.Find(e.Binary()); err != nil || found == nil || found.ID != e.ID {
		t.Errorf("found %v, %v; want the entry", found, err)
	}
	_, _, rollback := s.Rollback("text")
	_, gc := s.GC(0)
	_, _, installed := s.Install(pack(t, "text", "3.0.0"), platform, nil)
	for name, err := range map[string]error{"rollback": rollback, "gc": gc, "install": installed, "remove": s.Remove("text")} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v; want a read-only file system", name, err)
		}
	}
}
