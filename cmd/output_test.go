package teacmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that cannot be written any more when the run ends leaves the state
// on stdout.
func TestStateIsNotLostWithItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stdout, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	path := filepath.Join(dir, "gone", "out.json")
	err = (&app{stdout: &output{file: stdout}}).deliver(&runFlags{Output: path}, map[string]any{"x": int64(1)})
	if want := "write " + path + ": "; !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("err = %v, want %s...", err, want)
	}
	got, err := os.ReadFile(stdout.Name())
	if err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"x\": 1\n}\n"; string(got) != want {
		t.Errorf("stdout = %q, want %q", got, want)
	}
}
