package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// pythonClient returns a virtual environment with the package tea-client of this tree and
// the programs of its tests.
func pythonClient(t *testing.T) (venv string) {
	t.Helper()
	tools, err := filepath.Glob(filepath.Join(peertest.Dir(t, "..", "python-client"), "python/lib/python3*/site-packages"))
	if err != nil || len(tools) != 1 {
		t.Fatalf("the installed packages: %v, %v", tools, err)
	}
	dir := t.TempDir()
	venv = filepath.Join(dir, "venv")
	script := `
"$SCRIPTS/python-client" build "$PWD/wheel"
python3 -m venv --without-pip venv
site=$(echo venv/lib/python3*/site-packages)
echo "$TOOLS" >"$site/tools.pth"
python3 -m zipfile -e wheel/*.whl "$site"`
	prepare(t, dir, script, "TOOLS="+tools[0])
	return venv
}

// prepare runs a script in a directory with this user's caches; $SCRIPTS is the folder scripts.
func prepare(t *testing.T, dir, script string, env ...string) {
	t.Helper()
	scripts, err := filepath.Abs("../scripts")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "SCRIPTS="+scripts), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the package: %v\n%s", err, out)
	}
}

func TestPythonClient(t *testing.T) {
	t.Parallel()
	venv := pythonClient(t)
	python := filepath.Join(venv, "bin/python")
	tests, err := filepath.Abs("../clients/python/tests")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("tests", func(t *testing.T) {
		t.Parallel()
		dir, home := t.TempDir(), t.TempDir()
		got, err := shell(t.Context(), dir, home, python+" -B -m pytest -q -p no:cacheprovider "+tests)
		if err != nil || got.code != 0 {
			t.Errorf("%v\n%s%s", err, got.stdout, got.stderr)
		}
	})
	t.Run("notebook", func(t *testing.T) {
		t.Parallel()
		testNotebook(t, python)
	})
	t.Run("guide", func(t *testing.T) {
		t.Parallel()
		const page = "../docs/guide/clients.md"
		dir, home := t.TempDir(), t.TempDir()
		list, _, err := commands(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if strings.HasPrefix(c.file, "report.yaml") {
				if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.script), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		s := serveExample(t, dir, home)
		runPage(t, page, dir, "export PATH="+venv+"/bin:$PATH\npython() { TEA_HOST="+s.url+" command python \"$@\"; }")
		s.stop()
		mypy := python + " -B -m mypy --strict --cache-dir " + home
		types := mypy + " -p tea_client\n" + mypy + " report.py watch.py ./tea-plugin-words " + tests + "/*.py"
		got, err := shell(t.Context(), dir, home, types)
		if err != nil || got.code != 0 {
			t.Errorf("%v\n%s%s", err, got.stdout, got.stderr)
		}
	})
}

// runCells runs the code cells of a notebook and compares their values with the outputs stored in
// it. It prints a drawing as SVG instead.
const runCells = `
import ast, json, sys
names = {}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] != "code":
        continue
    tree = ast.parse("".join(cell["source"]))
    last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, cell["id"], "exec"), names)
    value = eval(compile(last, cell["id"], "eval"), names)
    if hasattr(value, "_repr_svg_"):
        print(value._repr_svg_())
        continue
    want = "".join("".join(output["data"]["text/plain"]) for output in cell["outputs"])
    assert repr(value) == want, f"{cell['id']}: {value!r}, want {want}"
`

// testNotebook runs a notebook with tea serve, and checks that it draws the graph of its run.
func testNotebook(t *testing.T, python string) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"cells.py": runCells, "workflow.yaml": "", "run.ipynb": ""} {
		data := []byte(text)
		if text == "" {
			var err error
			if data, err = os.ReadFile(filepath.Join("notebook", name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := serveExample(t, dir, home)
	defer s.stop()
	got, err := shell(t.Context(), dir, home, "TEA_HOST="+s.url+" "+python+" -B cells.py run.ipynb")
	if err != nil || got.code != 0 || strings.Count(got.stdout, "<svg") != 2 {
		t.Fatalf("%v\n%s%s", err, got.stdout, got.stderr)
	}
	before, after, _ := strings.Cut(got.stdout, "</svg>")
	for _, node := range []string{"check", "ask", "report"} {
		if !strings.Contains(before, ">"+node) || !strings.Contains(after, ">"+node) {
			t.Errorf("no node %s in\n%s", node, got.stdout)
		}
	}
	if before == after {
		t.Error("the drawing does not change when the run continues")
	}
}

func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	tools := peertest.Dir(t, "..", "openapi-clients")
	const page = "../docs/guide/clients.md"
	dir, home := t.TempDir(), t.TempDir()
	blocks, lines, err := commands(page)
	if err != nil {
		t.Fatal(err)
	}
	var program command
	for _, c := range blocks {
		if c.file != "report.yaml" && c.file != "report.mts" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.script), 0o600); err != nil {
			t.Fatal(err)
		}
		if program = c; c.file == "report.mts" {
			program.readOutput(lines, c.line+strings.Count(c.script, "\n")+1)
		}
	}
	prepare(t, dir, `
"$SCRIPTS/typescript-client" build "$PWD/node_modules/@tea/client"
ln -s "$TOOLS/node_modules/@types" node_modules/@types
echo '{"private": true, "type": "module"}' >package.json
cp "$SCRIPTS/../clients/typescript/test/client.test.ts" .
"$TOOLS/node_modules/.bin/tsc" --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --target es2022 --module nodenext --types node client.test.ts report.mts`, "TOOLS="+tools)
	t.Run("tests", func(t *testing.T) {
		t.Parallel()
		got, err := shell(t.Context(), dir, home, "node --test client.test.js")
		if err != nil || got.code != 0 {
			t.Errorf("%v\n%s%s", err, got.stdout, got.stderr)
		}
	})
	t.Run("guide", func(t *testing.T) {
		t.Parallel()
		home := t.TempDir()
		s := serveExample(t, dir, home)
		defer s.stop()
		got, err := shell(t.Context(), dir, home, "TEA_HOST="+s.url+" node report.mjs")
		if err != nil || got.code != 0 || !program.shown || normalize(got.stdout) != normalize(program.output) {
			t.Errorf("%s:%d: %v, exit code %d\n%s%s\nwant:\n%s", page, program.line, err, got.code, got.stdout, got.stderr, program.output)
		}
	})
}
