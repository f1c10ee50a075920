package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there := filepath.Join(dir, "greet.lua")
	if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(dir, []byte("{}")); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("err = %v, want that the file exists", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: something was written", entries, err)
	}
	if text, _ := os.ReadFile(there); string(text) != "mine" {
		t.Errorf("the file is now %q", text)
	}
}
