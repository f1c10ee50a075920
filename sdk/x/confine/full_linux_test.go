package confine_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
)

func TestFullDiskKeepsTheOldContent(t *testing.T) {
	t.Parallel()
	dir := smalldisktest.New(t, "64k").Dir
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
