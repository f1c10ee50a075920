package spec

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

var update = flag.Bool("update", false, "write the golden files and the reference")

// archiveFiles reads from an archive's files as if they were on disk.
func archiveFiles(files []txtar.File) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		for _, f := range files {
			if f.Name == name {
				return f.Data, nil
			}
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

// TestDiagnostics reads each flow.yaml of testdata/bad, with overlay.yaml and
// config.json where they are, and compares the diagnostics with the want
// section after it.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no test data", err)
	}
	for _, file := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			options := Options{ReadFile: archiveFiles(archive.Files), LookupEnv: func(string) (string, bool) { return "", false }}
			want := &txtar.File{}
			for i, f := range archive.Files {
				switch f.Name {
				case "overlay.yaml":
					options.Overlays = []string{f.Name}
				case "config.json":
					options.Config = string(f.Data)
				case "want":
					want = &archive.Files[i]
				}
			}
			_, diags := Load("flow.yaml", options)
			got := render(diags)
			if *update {
				if want.Name == "" {
					archive.Files = append(archive.Files, txtar.File{Name: "want"})
					want = &archive.Files[len(archive.Files)-1]
				}
				want.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(want.Data), got); d != "" {
				t.Errorf("diagnostics differ (-want +got):\n%s", d)
			}
		})
	}
}

func render(diags diag.List) string {
	var b strings.Builder
	for _, d := range diags {
		fmt.Fprintln(&b, d.Error())
	}
	return b.String()
}
