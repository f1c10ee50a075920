package blob_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
)

// onDisk are the files below a directory.
func onDisk(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			names = append(names, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func refused(t *testing.T, what string, err error, kind tea.ErrorType, reason error) {
	t.Helper()
	var typed *tea.Error
	if !errors.As(err, &typed) || typed.Type != kind || !errors.Is(err, reason) {
		t.Errorf("%s gives %v, want a %s because of %q", what, err, kind, reason)
	}
}

func TestAFullDiskKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := smalldisktest.New(t, "64k").Dir
	f := open(t, dir)
	put(t, f, "a", "old")
	for _, name := range []string{"a", "new/deep"} {
		_, err := f.Put(t.Context(), name, strings.NewReader(strings.Repeat("x", 1<<20)))
		refused(t, "a full disk", err, tea.ResourceExhausted, syscall.ENOSPC)
	}
	if got := onDisk(t, dir); got != "a" {
		t.Errorf("on the disk is %q, want a alone", got)
	}
	put(t, f, "b", strings.Repeat("y", 1<<12)) // there is room again
	if err := f.Delete(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestAFolderThatMustNotBeWritten(t *testing.T) {
	t.Parallel()
	disk := smalldisktest.New(t, "64k")
	dir := disk.Dir
	f := open(t, dir)
	put(t, f, "a", "old")
	disk.Protect(t, true)
	_, err := f.Put(t.Context(), "a", strings.NewReader("new"))
	refused(t, "Put", err, tea.PermissionDenied, syscall.EROFS)
	_, err = f.Put(t.Context(), "new/deep", strings.NewReader("new"))
	refused(t, "Put", err, tea.PermissionDenied, syscall.EROFS)
	refused(t, "Move", f.Move(t.Context(), "a", "b"), tea.PermissionDenied, syscall.EROFS)
	refused(t, "Delete", f.Delete(t.Context(), "a"), tea.PermissionDenied, syscall.EROFS)
	if info, err := f.Stat(t.Context(), "a"); err != nil || info.Size != 3 {
		t.Errorf("reading gives %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err != nil {
		t.Error(err)
	}
	disk.Protect(t, false)
	put(t, f, "a", "new")
	if got := onDisk(t, dir); got != "a" {
		t.Errorf("on the disk is %q, want a alone", got)
	}
}

// What ended the write is what its caller is told.
func TestAnAbandonedWrite(t *testing.T) {
	t.Parallel()
	f := open(t, t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := f.Put(ctx, "a", strings.NewReader("x"))
	if e := tea.AsError(err); e == nil || e.Type != tea.Canceled {
		t.Errorf("got %v, want canceled", err)
	}
	if _, err := f.Stat(t.Context(), "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want no blob", err)
	}
}
