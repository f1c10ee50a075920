package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

var badExample = regexp.MustCompile("(?s)```(?:yaml|lua) (bad|overlay|module)\n(.*?)```")

// notYAML are files for the codes that no YAML text can show; a nil one is
// not there.
var notYAML = map[string][]byte{
	diagcode.FileUnreadable: nil,
	diagcode.NotText:        []byte("\xff\xfen\x00o\x00"),
	diagcode.FileTooLarge:   []byte(strings.Repeat("#", 5_000_000)),
}

// strictOnly are the codes that only validate --strict reports.
var strictOnly = []string{diagcode.Unreachable, diagcode.NeverWritten}

// follows are the codes that always accompany another one: a template without quotes
// is a mapping, which is not a condition.
var follows = map[string]string{diagcode.KeyNotText: diagcode.WrongType}

// TestEveryErrorPage validates the example on the page of each code, which
// must give that code, and no other unless one follows from it.
func TestEveryErrorPage(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	unread, err := host.New(host.Options{Plugins: &asked{}})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../docs/errors/TEA*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no pages", err)
	}
	for _, page := range files {
		code := strings.TrimSuffix(filepath.Base(page), ".md")
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			h := h
			if code == diagcode.UncheckedAction {
				h = unread
			}
			file, o := writeExample(t, code)
			if code == diagcode.SecretMissing {
				checkMissingSecret(t, h, file)
				return
			}
			plain := h.Validate(file, o)
			o.Strict = true
			strict := h.Validate(file, o)
			if !has(strict, code) {
				t.Errorf("validate --strict gives:\n%v", strict)
			}
			if has(plain, code) == slices.Contains(strictOnly, code) {
				t.Errorf("validate gives:\n%v", plain)
			}
			for _, d := range plain {
				if d.Code != code && d.Code != follows[code] {
					t.Errorf("the example also gives %v", d)
				}
			}
		})
	}
}

// checkMissingSecret runs an example that is valid and lacks a secret.
func checkMissingSecret(t *testing.T, h *host.Host, file string) {
	t.Helper()
	wf, err := h.Load(file, host.LoadOptions{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wf.Close() })
	var diags host.Diagnostics
	if _, err := wf.Run(t.Context(), host.RunOptions{}); !errors.As(err, &diags) || !has(diags, diagcode.SecretMissing) {
		t.Errorf("a run gives %v", err)
	}
}

func has(diags host.Diagnostics, code string) bool {
	return slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Code == code })
}

// writeExample writes the files of a code's page into a directory.
func writeExample(t *testing.T, code string) (file string, o host.LoadOptions) {
	t.Helper()
	dir := t.TempDir()
	o.LookupEnv = func(string) (string, bool) { return "", false }
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file = filepath.Join(dir, "flow.yaml")
	if data, ok := notYAML[code]; ok {
		if data != nil {
			write("flow.yaml", data)
		}
		return file, o
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "errors", code+".md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := badExample.FindAllSubmatch(page, -1)
	if len(examples) == 0 {
		t.Fatal("the page has no example")
	}
	for _, example := range examples {
		switch string(example[1]) {
		case "overlay":
			o.Overlays = append(o.Overlays, write("overlay.yaml", example[2]))
			continue
		case "module":
			write("module.lua", example[2])
			continue
		}
		write("flow.yaml", example[2])
	}
	return file, o
}

// FuzzParse looks for workflows that make reading or compiling them panic, or
// take long.
func FuzzParse(f *testing.F) {
	pages, err := filepath.Glob(filepath.Join("..", "docs", "errors", "*.md"))
	if err != nil || len(pages) == 0 {
		f.Fatal("no pages", err)
	}
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, example := range badExample.FindAllSubmatch(page, -1) {
			f.Add(example[2])
		}
	}
	for _, seed := range []string{
		"nodes: [{name: a}, {name: b}, {name: c}]\nedges: [{from: a, parallel: [b, c]}, {from: b, parallel: [c, a]}, {from: START, to: [a, b]}]",
		"nodes: [{name: m, type: dynamic_parallel, items: [1], steps: [{name: l, type: while_loop, condition: x, body: {a: }}]}, {name: j, fan_in: true}]",
		"nodes: [{name: a, run: 'state.x = 1 return {[1] = state.y, z = ...}', if: 'x == True', goto: [{if: '!x', to: a}]}]",
		"nodes: [{name: a, uses: http.get, with: {url: '{{ x', headers: {'a b': 1}}}]",
	} {
		f.Add([]byte(seed))
	}
	h, err := host.New(host.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { h.Close() })
	f.Fuzz(func(t *testing.T, data []byte) {
		begun := time.Now()
		wf, err := h.Parse("flow.yaml", data, host.LoadOptions{Strict: true, LookupEnv: func(string) (string, bool) { return "", false }})
		if (wf == nil) != (err != nil) {
			t.Errorf("workflow = %v, err = %v", wf != nil, err)
		}
		if wf != nil {
			wf.Close()
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("took %s for %d bytes", took, len(data))
		}
	})
}
