package teacmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWorkflowsOfAWorker(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "flows[1]")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.yml")
	for _, name := range []string{"a.yml", "a_test.yml", ".b.yaml", "c.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{dir, file} {
		got, err := workflowsAt(path)
		if diff := cmp.Diff([]string{file}, got); diff != "" || err != nil {
			t.Errorf("%s: %v, %s", path, err, diff)
		}
	}
	if _, err := workflowsAt(dir + "x"); err == nil {
		t.Error("a path that does not exist is not an error")
	}
}
