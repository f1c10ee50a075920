package scaffold

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// runGo runs the go command in a project outside of the repository.
func runGo(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=-trimpath")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
}

// newProject writes a project into a new directory.
func newProject(t *testing.T, name, language string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tea-plugin-"+name)
	if _, err := Write(sharedFiles(t), dir, name, language); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The project in Go builds and passes its tests, the suite of the protocol
// among them.
func TestGoProjectPassesItsTests(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it compiles a project")
	dir := newProject(t, "weather", "go")
	if *update {
		runGo(t, dir, "mod", "tidy")
		for _, name := range []string{"go.mod", "go.sum"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			data = []byte(strings.ReplaceAll(string(data), "weather", "greeter"))
			if err := os.WriteFile("templates/go/"+name+".tmpl", data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	runGo(t, dir, "vet", "./...")
	runGo(t, dir, "test", "./...")
	format := exec.CommandContext(t.Context(), "gofmt", "-l", ".")
	format.Dir = dir
	if out, err := format.Output(); err != nil || len(out) > 0 {
		t.Errorf("gofmt -l: %v\n%s", err, out)
	}
}

// The example is what the template makes, apart from the way to the SDK.
func TestExampleIsTheTemplate(t *testing.T) {
	t.Parallel()
	files, err := project(sharedFiles(t), "greeter", "go")
	if err != nil {
		t.Fatal(err)
	}
	example := filepath.Join(repository, "examples/plugin-go")
	for name, data := range files {
		if strings.HasPrefix(name, "third_party/") {
			continue
		}
		text := string(data)
		if name == "go.mod" {
			text, _, _ = strings.Cut(text, "\nreplace ")
		}
		file := filepath.Join(example, filepath.FromSlash(name))
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("%s differs from the template; run with -update:\n%s", file, diff)
		}
	}
}

func TestWriteKeepsExistingFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	existing := filepath.Join(dir, "README.md")
	if err := os.WriteFile(existing, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(sharedFiles(t), dir, "weather", "go"); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("err = %v, want that the file exists", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: something was written", entries, err)
	}
}

func TestInvalidNamesAreRefused(t *testing.T) {
	t.Parallel()
	shared := sharedFiles(t)
	for name, want := range map[string]string{
		"":                      "lower-case letters and digits",
		"my-plugin":             "lower-case letters and digits",
		"../x":                  "lower-case letters and digits",
		"Weather":               "lower-case letters and digits",
		"7up":                   "lower-case letters and digits",
		strings.Repeat("a", 32): "lower-case letters and digits",
		"func":                  "reserved in Go",
		"main":                  "reserved in Go",
		"serve":                 "reserved in Go",
	} {
		if _, err := Write(shared, t.TempDir(), name, "go"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: err = %v, want %q", name, err, want)
		}
	}
	if _, err := Write(shared, t.TempDir(), "weather", "cobol"); err == nil || !strings.Contains(err.Error(), "expected one of go") {
		t.Errorf("err = %v, want the languages", err)
	}
}
