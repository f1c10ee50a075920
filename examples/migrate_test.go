package examples

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// runTea runs a command of tea in this directory.
func runTea(t *testing.T, arguments string) outcome {
	t.Helper()
	got, err := shell(t.Context(), ".", t.TempDir(), "tea "+arguments)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The translations of tea migrate are valid with the real plugins, and run.
func TestMigratedWorkflows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../cmd/tea-migrate/internal/migrate/testdata/*/*.tea.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if got := runTea(t, "validate "+file); got.code != 0 {
			t.Errorf("%s: %s", file, got.stderr)
		}
	}
	dir := t.TempDir()
	got := runTea(t, "migrate ../cmd/tea-migrate/internal/migrate/testdata/dagu --out "+dir)
	if got.code != 0 {
		t.Fatalf("%d: %s %s", got.code, got.stdout, got.stderr)
	}
	got = runTea(t, "run "+filepath.Join(dir, "nightly.tea.yaml")+" -q")
	if got.code != 0 || !strings.Contains(got.stdout, `"ALL": "monday and left and right 3 /tmp/copies"`) || !strings.Contains(got.stdout, `"stdout": "finished\n"`) || strings.Contains(got.stdout, "failed") {
		t.Errorf("nightly: %d, %s, %s", got.code, got.stdout, got.stderr)
	}
	got = runTea(t, "run "+filepath.Join(dir, "chain.tea.yaml")+" -q")
	if got.code != 0 || !strings.Contains(got.stdout, `"GREETING": "hi it's me; $(id)"`) {
		t.Errorf("a parameter is data, never code: %d, %s, %s", got.code, got.stdout, got.stderr)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no python3")
		}
		t.Skip("there is no python3")
	}
	got = runTea(t, "migrate ../cmd/tea-migrate/internal/migrate/testdata/legacy/orders.yaml --out "+dir)
	if got.code != 0 {
		t.Fatalf("%d: %s %s", got.code, got.stdout, got.stderr)
	}
	got = runTea(t, "run "+filepath.Join(dir, "orders.tea.yaml")+` -q -i '{"orders": [{"price": 70}, {"price": 80.5}], "big": true}'`)
	for _, part := range []string{`"total": 150.5`, `"success": true`, `"size": "big"`, `"note": "size big"`, `"text": "EUR 150.5 in 100"`} {
		if got.code != 0 || !strings.Contains(got.stdout, part) {
			t.Errorf("%s is not in %s, %s", part, got.stdout, got.stderr)
		}
	}
	broken := filepath.Join(dir, "orders.tea.yaml")
	text, err := os.ReadFile(broken)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, []byte(strings.Replace(string(text), `order["price"]`, `order["prize"]`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	got = runTea(t, "run "+broken+` -q -i '{"orders": [{"price": 70}]}'`)
	if got.code != 1 || !strings.Contains(got.stderr, "orders.tea.yaml:28:9: KeyError: 'prize'") {
		t.Errorf("an error in Python: %d, %s", got.code, got.stderr)
	}
}

// The corpus has a workflow for each part of the dialect. At least ten of eleven are valid after tea
// migrate, and those that need no service end with the expected state.
func TestMigrationCorpus(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("there is no python3")
	}
	archive, err := txtar.ParseFile("../cmd/tea-migrate/internal/migrate/testdata/corpus.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir, files := t.TempDir(), 0
	for _, f := range archive.Files {
		if filepath.Ext(f.Name) == ".yaml" {
			files++
			if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := runTea(t, "migrate "+dir)
	valid := strings.Count(got.stdout, ".tea.yaml: valid;")
	if t.Logf("%d of %d are valid", valid, files); valid*11 < files*10 {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
	for _, f := range archive.Files {
		if filepath.Ext(f.Name) != ".json" {
			continue
		}
		var expected struct{ In, Out map[string]any }
		if err := json.Unmarshal(f.Data, &expected); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		input, err := json.Marshal(expected.In)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(f.Name, ".json")
		got := runTea(t, fmt.Sprintf("run %s.tea.yaml -q -i '%s'", filepath.Join(dir, name), input))
		var state map[string]any
		if err := json.Unmarshal([]byte(got.stdout), &state); err != nil || got.code != 0 {
			t.Errorf("%s: %d, %s", name, got.code, got.stderr)
			continue
		}
		for key, want := range expected.Out {
			if d := cmp.Diff(want, state[key]); d != "" {
				t.Errorf("%s: %s (-there +here):\n%s", name, key, d)
			}
		}
	}
}
