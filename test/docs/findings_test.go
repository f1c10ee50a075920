package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindings checks the form of the scripts in findings, without running them.
func TestFindings(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(root + "/findings/*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	listed := read(t, root+"/findings/README.md")
	for _, script := range scripts {
		name := filepath.Base(script)
		if info, err := os.Stat(script); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s is not executable: %v", name, err)
		}
		if !strings.Contains(listed, "]("+name+")") {
			t.Errorf("findings/README.md does not list %s", name)
		}
		text := read(t, script)
		for _, part := range []string{"GOPROXY", "--index-url", "--registry", "sudo"} {
			if strings.Contains(text, part) {
				t.Errorf("%s has %q: packages come from where the machine gets them, into a temporary folder", name, part)
			}
		}
		head, _, _ := strings.Cut(text, "\nset -eu")
		for _, part := range []string{"# A good guess: ", "# Seen on ", "# Exits with 1 if the behaviour changed."} {
			if !strings.Contains(head, "\n"+part) {
				t.Errorf("the head of %s lacks %q", name, part)
			}
		}
	}
}
