package blob_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	opened := storetest.Opened[*blob.Folder]{}
	storetest.BlobStorage(t, func(t *testing.T) store.BlobStorage {
		t.Helper()
		return opened.Again(t, func() (*blob.Folder, error) { return blob.Open(filepath.Join(top, filepath.Base(t.Name()))) })
	})
}

func open(t *testing.T, dir string) *blob.Folder {
	t.Helper()
	f, err := blob.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func put(t *testing.T, f *blob.Folder, name, content string) {
	t.Helper()
	if _, err := f.Put(t.Context(), name, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// A command that looks at a memory with a mistyped path must not create it.
func TestReadingCreatesNoFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mistyped", "blobs")
	f := open(t, dir)
	if _, err := f.Get(t.Context(), "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
	if err := errors.Join(f.Delete(t.Context(), "a"), f.Sweep()); err != nil {
		t.Error(err)
	}
	for _, err := range f.List(t.Context(), "") {
		t.Errorf("List: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was created: %v", err)
	}
	put(t, f, "a", "a")
	if info, err := f.Stat(t.Context(), "a"); err != nil || info.Size != 1 {
		t.Errorf("Stat: %v, %v", info, err)
	}
}

// A process that only opens the folder must not remove the file that another one
// is writing.
func TestOpeningDoesNotAffectTheWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writer := open(t, dir)
	put(t, writer, "a", "a")
	unfinished := filepath.Join(dir, ".writing-X")
	if err := os.WriteFile(unfinished, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := open(t, dir)
	if _, err := other.Stat(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(unfinished); err != nil {
		t.Errorf("the unfinished blob is gone: %v", err)
	}
	for info := range other.List(t.Context(), "") {
		if info.Name != "a" {
			t.Errorf("the unfinished blob is listed: %v", info)
		}
	}
	next := open(t, dir)
	put(t, next, "b", "b")
	if _, err := os.Stat(unfinished); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a crash has left is still there: %v", err)
	}
}

func TestSymbolicLinksDoNotLeadOut(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	outside, dir := filepath.Join(top, "outside"), filepath.Join(top, "blobs")
	f := open(t, dir)
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"file": secret, "dir": outside, "relative": "../outside/secret", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	put(t, f, "a", "a")
	for _, name := range []string{"file", "dir/secret", "relative", "loop", "dir"} {
		if r, err := f.Get(t.Context(), name); err == nil {
			r.Close()
			t.Errorf("Get(%q) leads out", name)
		}
		if _, err := f.Stat(t.Context(), name); err == nil {
			t.Errorf("Stat(%q) leads out", name)
		}
	}
	if _, err := f.Put(t.Context(), "dir/new", strings.NewReader("x")); err == nil {
		t.Error("Put leads out")
	}
	if err := f.Move(t.Context(), "a", "dir/a"); err == nil {
		t.Error("Move leads out")
	}
	if err := f.Delete(t.Context(), "dir/secret"); err == nil {
		t.Error("Delete leads out")
	}
	put(t, f, "file", "mine")
	if text, err := os.ReadFile(secret); err != nil || string(text) != "secret" {
		t.Errorf("the file outside is now %q, %v", text, err)
	}
	var names []string
	for info, err := range f.List(t.Context(), "") {
		if err != nil {
			t.Error(err)
		}
		names = append(names, info.Name)
	}
	if got := strings.Join(names, " "); got != "a file" {
		t.Errorf("listed: %s", got)
	}
}

func TestADirectoryThatWasRemovedIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := open(t, dir)
	put(t, f, "a/b/c", "c")
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	put(t, f, "a/b/d", "d")
}
