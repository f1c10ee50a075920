package examples

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

var update = flag.Bool("update", false, "write what comes out into the READMEs and the golden files")

// bin holds tea and its plugins.
var bin string

// built are the commands that the examples call.
var built = map[string]string{
	"tea":               "./cmd/tea",
	"tea-lsp":           "./cmd/tea-lsp",
	"tea-mcp":           "./cmd/tea-mcp",
	"tea-eval":          "./cmd/tea-eval",
	"tea-migrate":       "./cmd/tea-migrate",
	"tea-serve":         "./cmd/tea-serve",
	"tea-temporal":      "./cmd/tea-temporal",
	"tea-plugin-device": "./plugins/device/cmd/tea-plugin-device",
	"tea-plugin-notify": "./plugins/notify/cmd/tea-plugin-notify",
	"tea-plugin-graph":  "./plugins/graph/cmd/tea-plugin-graph",
	"tea-plugin-llm":    "./plugins/llm/cmd/tea-plugin-llm",
	"tea-plugin-mcp":    "./plugins/mcp/cmd/tea-plugin-mcp",
	"tea-plugin-memory": "./plugins/memory/cmd/tea-plugin-memory",
	"tea-plugin-web":    "./plugins/web/cmd/tea-plugin-web",
	"tea-plugin-plan":   "./plugins/plan/cmd/tea-plugin-plan",
	"tea-plugin-python": "./plugins/python/cmd/tea-plugin-python",
}

func TestMain(m *testing.M) {
	peertest.LongPackage("it builds and runs programs")
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (code int, err error) {
	if bin, err = os.MkdirTemp("", "tea-examples-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bin)) }()
	for name, pkg := range built {
		build := exec.Command("go", "build", "-o", filepath.Join(bin, name), pkg)
		if flags, ok := cozo(); ok && name == "tea-plugin-graph" {
			build = exec.Command("go", "build", "-tags", "cozo", "-o", filepath.Join(bin, name), pkg)
			build.Env = append(os.Environ(), "CGO_LDFLAGS="+flags)
		}
		build.Dir = ".."
		if out, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	// Installed plugins have their manifests stored too.
	refreshed, err := shell(context.Background(), bin, bin, "tea plugin refresh --beside")
	if err != nil || refreshed.code != 0 {
		return 0, fmt.Errorf("tea plugin refresh: %w\n%s", err, refreshed.stderr)
	}
	if *update {
		if err := recordAll(); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

// cozo returns the linker flags of CozoDB; false if this machine has not built it.
func cozo() (flags string, ok bool) {
	out, err := exec.Command("../scripts/cozo", "flags").Output()
	return strings.TrimSpace(string(out)), err == nil
}

func needCozo(t *testing.T) {
	t.Helper()
	if _, ok := cozo(); !ok {
		missing(t, "CozoDB is missing: run scripts/cozo build")
	}
}

// onCozo are folders whose workflows need the graph's backend cozo.
var onCozo = []string{"topology"}

// elsewhere are folders whose commands need more than tea and have tests of
// their own.
var elsewhere = []string{"embed", "irrigation", "memory-bbolt", "meter", "plugin-go", "plugin-node", "plugin-python", "plugin-rust", "pump", "research", "temporal", "topology-cypher", "web"}

func TestREADMEs(t *testing.T) {
	t.Parallel()
	readmes, err := filepath.Glob("*/README.md")
	if err != nil || len(readmes) < 10 {
		t.Fatalf("READMEs: %v, %v", readmes, err)
	}
	for _, file := range readmes {
		example := filepath.Dir(file)
		if slices.Contains(elsewhere, example) {
			continue
		}
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			if slices.Contains(onCozo, example) {
				needCozo(t)
			}
			runREADME(t, example)
		})
	}
}

func runREADME(t *testing.T, example string) {
	dir := copyExample(t, example)
	runPage(t, filepath.Join(example, "README.md"), dir)
	compareGolden(t, example, dir)
}

// copyExample returns a copy of an example that has the documentation where the
// repository has it.
func copyExample(t *testing.T, example string) (dir string) {
	t.Helper()
	return copyExampleTo(t, t.TempDir(), example)
}

func copyExampleTo(t *testing.T, root, example string) (dir string) {
	t.Helper()
	dir = filepath.Join(root, "examples", example)
	if err := os.CopyFS(dir, os.DirFS(example)); err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Abs("../docs")
	if err == nil {
		err = os.Symlink(docs, filepath.Join(root, "docs"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// runPage runs the commands of a page, in a directory.
// runPage writes the files of a page and runs its commands, each after prelude.
func runPage(t *testing.T, page, dir string, prelude ...string) {
	t.Helper()
	list, lines, err := commands(page)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	changed := false
	// The lines of the outputs move when one before them changes its length.
	for moved, i := 0, 0; i < len(list); i++ {
		c := list[i]
		if c.file != "" {
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.script), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := shell(t.Context(), dir, home, strings.Join(append(prelude, c.script), "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got.code != c.exit {
			t.Fatalf("%s:%d: exit code %d, want %d\n%s\n%s%s", page, c.line, got.code, c.exit, c.script, got.stdout, got.stderr)
		}
		diff := cmp.Diff(normalize(c.output), normalize(got.stdout))
		switch {
		case !c.shown || diff == "":
		case *update:
			shown := strings.Split(strings.TrimRight(got.stdout, "\n"), "\n")
			lines = slices.Replace(lines, c.first+moved, c.last+moved, shown...)
			moved += len(shown) - (c.last - c.first)
			changed = true
		default:
			t.Errorf("%s:%d: another output (-page +got):\n%s", page, c.line, diff)
		}
	}
	if changed {
		if err := os.WriteFile(page, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDemo runs what `make demo` runs, without an answer.
func TestDemo(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	gateway := filepath.Join(root, "examples", "gateway")
	for to, from := range map[string]string{filepath.Join(root, "scripts"): "../scripts", gateway: "gateway", filepath.Join(root, "examples", "pump"): "pump"} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(bin, filepath.Join(root, "bin")); err != nil {
		t.Fatal(err)
	}
	buildPump(t, filepath.Join(bin, "pump-simulator"))
	got, err := shell(t.Context(), root, t.TempDir(), "scripts/demo")
	if err != nil {
		t.Fatal(err)
	}
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for _, want := range []string{"# Gateway report, 2026-03-14", "pump: speed 40 -> 0", "examples/gateway/report.md", "TEA_LLM=ollama"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the demo does not print %q:\n%s", want, got.stdout)
		}
	}
	report, err := os.ReadFile(filepath.Join(gateway, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"**Likely cause:**", "T-20260314-1", "| Get a bearing for pump-1 |  | 2 in shelf B3 |", "Nobody answered within 1 s, so *high* was taken."} {
		if !strings.Contains(string(report), want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
}

// compareGolden compares what an example has written with its golden folder.
func compareGolden(t *testing.T, example, dir string) {
	t.Helper()
	golden, err := filepath.Glob(filepath.Join(example, "golden", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range golden {
		got, err := os.ReadFile(filepath.Join(dir, filepath.Base(file)))
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(normalize(string(want)), normalize(string(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// outcome is what came of a script.
type outcome struct {
	stdout, stderr string
	code           int
}

// shell runs a script with tea on the path, without the user's environment and
// without a terminal. It returns an error if the script could not be run.
func shell(ctx context.Context, dir, home, script string) (outcome, error) {
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", script)
	cmd.Dir, cmd.Env = dir, environment(home)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exited *exec.ExitError
	if ctx.Err() == nil && errors.As(err, &exited) {
		err = nil
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}, err
}

// environment has tea on the path and nothing of the user's.
func environment(home string) []string {
	return []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "TZ=UTC", "TEA_PLUGINS=" + bin,
	}
}

// TestReadmePicture compares the picture in the README with the graph of its
// workflow.
func TestReadmePicture(t *testing.T) {
	t.Parallel()
	blocks, _, err := commands(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(blocks, func(c command) bool { return c.file == "flow.yaml" })
	flow := filepath.Join(t.TempDir(), "flow.yaml")
	if err := os.WriteFile(flow, []byte(blocks[i].script), 0o600); err != nil {
		t.Fatal(err)
	}
	svg, err := exec.CommandContext(t.Context(), filepath.Join(bin, "tea"), "inspect", "--format", "svg", "--plugins", bin, flow).Output()
	if err != nil {
		t.Fatal(err)
	}
	picture := filepath.Join("..", "docs", "first.svg")
	if *update {
		if err := os.WriteFile(picture, svg, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(svg)); diff != "" {
		t.Errorf("docs/first.svg (-want +got), run with -update:\n%s", diff)
	}
}
