package migrate

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func toolbox(t *testing.T, out io.Writer) *teacmd.Toolbox {
	t.Helper()
	stub := &tea.Bundle{Name: "stub", Version: "1.0.0", Settings: map[string]*schema.Schema{"python": nil, "llm": nil, "command": nil}}
	for _, name := range []string{"python.run", "llm.call", "embedding.create", "command.run"} { // the examples have the real ones
		stub.Actions = append(stub.Actions, host.Func(name, "Does nothing.", nil))
	}
	h, err := host.New(host.Options{Bundles: []*tea.Bundle{stub}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return &teacmd.Toolbox{Host: h, Out: out}
}

// one translates a file and checks the result.
func one(t *teacmd.Toolbox, file, dir string, single bool) (valid bool, err error) {
	written, err := translate(t, file, dir, single)
	if err != nil {
		return false, err
	}
	return written.check(t)
}

// Every translated file is compared, with its report, and is valid.
func TestTranslations(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, workflowEnd) {
			continue
		}
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			valid, err := one(toolbox(t, t.Output()), file, dir, true)
			if err != nil || !valid {
				t.Errorf("valid %v, %v", valid, err)
			}
			for _, end := range []string{workflowEnd, reportEnd} {
				golden := strings.TrimSuffix(file, ".yaml") + end
				got, err := os.ReadFile(filepath.Join(dir, filepath.Base(golden)))
				if err != nil {
					t.Fatal(err)
				}
				if *update {
					if err := os.WriteFile(golden, got, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, _ := os.ReadFile(golden)
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Errorf("%s:\n%s", golden, diff)
				}
			}
		})
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	for _, end := range []string{workflowEnd, reportEnd} {
		dir := t.TempDir()
		old := filepath.Join(dir, "fan"+end)
		if err := os.WriteFile(old, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := one(toolbox(t, io.Discard), "testdata/legacy/fan.yaml", dir, true)
		if err == nil || !strings.Contains(err.Error(), "is not overwritten") {
			t.Errorf("%s: %v", end, err)
		}
		if err := writeNew(old, nil); err == nil {
			t.Error("writeNew has overwritten a file")
		}
		entries, err := os.ReadDir(dir)
		if text, _ := os.ReadFile(old); err != nil || len(entries) != 1 || string(text) != "mine" {
			t.Errorf("%s: %v, %v, %q", end, entries, err, text)
		}
	}
}

func TestBrokenFilesHaveAPosition(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 'b'; i < 'k'; i++ {
		bomb += string(i) + ": &" + string(i) + " [" + strings.Repeat("*"+string(i-1)+", ", 9) + "*" + string(i-1) + "]\n"
	}
	for text, want := range map[string]string{
		"nodes:\n  - name: [a\n":              "file.yaml:",
		"nodes: [a\n\tb]":                     "this is not YAML",
		"- a\n":                               "file.yaml:1: expected a mapping",
		"nodes: []\n---\nnodes: []\n":         "several documents",
		"":                                    "this is not a YAML document",
		bomb + "nodes: *j\n":                  "too large",
		"nodes: &n [*n]\n":                    "file.yaml:",
		"nodes: \xff":                         "not UTF-8",
		"? [a]\n: b\nnodes: []\n":             "file.yaml:1: expected text as a key",
		"nodes: " + strings.Repeat("[", 5000): "file.yaml:",
	} {
		file := filepath.Join(t.TempDir(), "file.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
		var out strings.Builder
		if valid, err := one(toolbox(t, &out), file, filepath.Dir(file), true); valid || err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%.40q: %v, %v, %s", text, valid, err, &out)
		}
		if entries, _ := os.ReadDir(filepath.Dir(file)); len(entries) != 1 {
			t.Errorf("%.40q: it has written %v", text, entries)
		}
	}
}

// Odd documents end in a report, never in a crash.
func FuzzTranslate(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("nodes: {a: 1, b: []}\nedges: 7\nsettings: x\nvariables: []\nconfig: 1\ndata: 1\n"))
	f.Add([]byte("nodes: [1, {run: {}}, {with: 1, uses: llm.call, provider: shell}, {strategy: 1}, {retry: 1, on_error: {}}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		doc, err := read(file)
		if err != nil {
			return
		}
		r := &report{}
		switch doc.system() {
		case legacySystem:
			(&legacy{report: r, root: doc.root}).translate()
		case daguSystem:
			(&dagu{report: r, root: doc.root, name: "f"}).translate()
		}
		if _, err := doc.text(); err != nil {
			t.Skip(err)
		}
		r.text()
	})
}
