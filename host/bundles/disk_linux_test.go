package bundles

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
)

// The disk is full at each block that an installation needs, one after the
// other. The old version stays, and nothing of the new one.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smalldisktest.New(t, "512k")
	dir := disk.Dir
	s := storeAt(filepath.Join(dir, "tea"))
	install(t, s, packOpen(t, "text", "1.0.0"))
	next := packSized(t, "text", "2.0.0", 2000)
	before := files(t, dir)
	failures := 0
	for free := 0; ; free++ {
		if free > 100 {
			t.Fatal("the version is never installed")
		}
		disk.Fill(t, int64(free)*4096)
		_, _, err := s.Install(next, platform, nil, nil)
		disk.Free(t)
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

func TestReadOnlyStore(t *testing.T) {
	t.Parallel()
	disk := smalldisktest.New(t, "512k")
	s := storeAt(filepath.Join(disk.Dir, "tea"))
	e := install(t, s, packOpen(t, "text", "1.0.0"))
	install(t, s, packOpen(t, "text", "2.0.0"))
	disk.Protect(t, true)
	wantVersions(t, s, "text: 1.0.0 [2.0.0]")
	if faults := s.Verify(); len(faults) > 0 {
		t.Error(faults)
	}
	if found, err := s.Find(e.Binary()); err != nil || found == nil || found.ID != e.ID {
		t.Errorf("found %v, %v; want the entry", found, err)
	}
	_, _, rollback := s.Rollback("text")
	_, gc := s.GC(0)
	_, _, installed := s.Install(packOpen(t, "text", "3.0.0"), platform, nil, nil)
	for name, err := range map[string]error{"rollback": rollback, "gc": gc, "install": installed, "remove": s.Remove("text")} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v; want a read-only file system", name, err)
		}
	}
}
