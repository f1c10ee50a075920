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
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
	scripts, err := filepath.Abs("../scripts")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TOOLS="+tools[0], "SCRIPTS="+scripts)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the package: %v\n%s", err, out)
	}
	return venv
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
