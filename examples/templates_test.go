package examples

import (
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A file that is not embedded would be missing in a new plugin.
func TestPluginsHaveAllFiles(t *testing.T) {
	t.Parallel()
	var got []string
	err := fs.WalkDir(Plugins, ".", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			got = append(got, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "plugin-node", "plugin-python", "plugin-rust").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(strings.Fields(string(out)), func(file string) bool {
		return strings.HasSuffix(file, "/conformance_test.go") || strings.Contains(file, "/proto/")
	})
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("embedded files differ from those of the repository (-repository +embedded):\n%s", diff)
	}
}
