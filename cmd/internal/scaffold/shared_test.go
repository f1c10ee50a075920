package scaffold

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

var update = flag.Bool("update", false, "write go.mod and go.sum of the Go template, and the examples")

const repository = "../../.."

// sharedFiles returns the files of the repository that projects contain.
func sharedFiles(t *testing.T) Files {
	t.Helper()
	files, err := Read(repository, filepath.Join(repository, "sdk"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What the tools of the languages leave in a checkout is not in a project.
func TestOnlyFilesOfTheRepositoryAreShared(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-co", "--exclude-standard", "sdk", "examples/plugin-node", "examples/plugin-python", "examples/plugin-rust")
	list.Dir = repository
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	inRepository := map[string]bool{"sdk/LICENSE": true}
	for file := range strings.Lines(string(out)) {
		inRepository[strings.TrimPrefix(strings.TrimSpace(file), "examples/")] = true
	}
	for _, f := range sharedFiles(t) {
		if !inRepository[f.Name] && !strings.HasPrefix(f.Name, "proto/") && !strings.HasPrefix(f.Name, "docs/") {
			t.Errorf("%s is not a file of the repository", f.Name)
		}
	}
}

func TestPackedFilesAreTheSame(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it compiles a project")
	want := sharedFiles(t)
	var archive bytes.Buffer
	if err := want.Pack(&archive); err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(&archive)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, Files(txtar.Parse(text).Files)); diff != "" {
		t.Error(diff)
	}
}
