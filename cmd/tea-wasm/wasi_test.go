//go:build !js

package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tea for wasip1 runs under node's WASI, and resumes what it has kept.
func TestWASI(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("node is missing")
		}
		t.Skip("node is missing")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "tea.wasm")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-tags", "noplugins", "-o", program, "../../cmd/tea")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	root := filepath.Join(dir, "root")
	for name, text := range map[string]string{
		filepath.Join(root, "flow.yaml"): "nodes:\n  - {name: a, run: 'return {n = state.n + 1}'}\n  - {name: b, uses: file.write, with: {path: out.txt, content: 'n={{ state.n }}'}}\n",
		filepath.Join(dir, "run.mjs"): `import { WASI } from 'node:wasi';
import { readFile } from 'node:fs/promises';
const [program, root, ...args] = process.argv.slice(2);
const wasi = new WASI({ version: 'preview1', args: ['tea', ...args], env: { PWD: '/' }, preopens: { '/': root } });
process.exitCode = wasi.start(await WebAssembly.instantiate(await WebAssembly.compile(await readFile(program)), wasi.getImportObject()));
`,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tea := func(wantCode int, args ...string) string {
		t.Helper()
		var out, problems bytes.Buffer
		cmd := exec.Command("node", append([]string{"--no-warnings", filepath.Join(dir, "run.mjs"), program, root}, args...)...)
		cmd.Stdout, cmd.Stderr = &out, &problems
		err := cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != wantCode {
			t.Fatalf("tea %v ends with %d, want %d: %v\n%s", args, code, wantCode, err, &problems)
		}
		return out.String()
	}
	tea(130, "run", "flow.yaml", "-q", "-c", "/runs", "-i", `{"n": 9007199254740993}`, "--interrupt-before", "a")
	runs, err := filepath.Glob(filepath.Join(root, "runs", "*.tea"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("the checkpoints are %v: %v", runs, err)
	}
	got := tea(0, "resume", "/runs/"+filepath.Base(runs[0]), "-q")
	if diff := cmp.Diff("{\n  \"bytes\": 18,\n  \"n\": 9007199254740992,\n  \"path\": \"out.txt\"\n}\n", got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text, err := os.ReadFile(filepath.Join(root, "out.txt")); err != nil || string(text) != "n=9007199254740992" {
		t.Errorf("the file has %q: %v", text, err)
	}
}
