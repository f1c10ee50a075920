package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
