package confine_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// smallDisk mounts a file system of 64 KiB, where the test may.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("cannot mount a small file system:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func TestFullDiskKeepsTheOldContent(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	write(t, filepath.Join(dir, "a"), "old")
	root, err := confine.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, err := range map[string]error{
		"writing":   root.WriteFile("a", make([]byte, 1<<20), false),
		"appending": root.AppendFile("a", make([]byte, 1<<20), false),
	} {
		wantType(t, name, err, tea.ResourceExhausted)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s gives %v, want the system's reason", name, err)
		}
	}
	if got := content(t, filepath.Join(dir, "a")); got != "old" {
		t.Errorf("the file holds %d bytes, want the old content", len(got))
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v; want no leftovers", entries, err)
	}
}
