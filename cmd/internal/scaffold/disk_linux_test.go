package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
)

func TestFullDiskLeavesNoPartOfAProject(t *testing.T) {
	t.Parallel()
	disk := smalldisktest.New(t, "256k")
	dir := filepath.Join(disk.Dir, "weather")
	if _, err := Write(sharedFiles(t), dir, "weather", "go"); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("err = %v, want no space left", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v are left", entries, err)
	}
}
