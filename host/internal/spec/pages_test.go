package spec

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

const pages = "../../../docs/errors"

// foundHere reports whether the loader reports a code; the others are found by
// the graph and by those who run it.
func foundHere(code string) bool {
	switch code {
	case diagcode.DuplicateNode, diagcode.NodeNameNotAllowed:
		return true
	case diagcode.WrongSetting, diagcode.UnknownSetting, diagcode.UnreadSettings, diagcode.SecretMissing, diagcode.ModuleSchema:
		return false
	}
	return slices.ContainsFunc([]string{"TEA10", "TEA11", "TEA15", "TEA16"}, func(group string) bool { return strings.HasPrefix(code, group) })
}

// notInAFile are the codes that no text of a workflow can trigger.
var notInAFile = []string{diagcode.FileUnreadable, diagcode.NotText, diagcode.FileTooLarge}

var (
	examples = regexp.MustCompile("(?s)```yaml (bad|overlay)\n(.*?)```")
	module   = regexp.MustCompile("(?s)```lua module\n(.*?)```")
)

// TestPages loads the example on each code's page. It must report that code,
// or, where the loader does not look for it, nothing.
func TestPages(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(pages, "TEA*.md"))
	if err != nil || len(files) == 0 {
		t.Fatal("no pages", err)
	}
	for _, file := range files {
		code := strings.TrimSuffix(filepath.Base(file), ".md")
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			page, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(notInAFile, code) {
				checkExample(t, code, string(page))
			}
		})
	}
}

func checkExample(t *testing.T, code, page string) {
	t.Helper()
	files := []txtar.File{}
	o := Options{LookupEnv: func(string) (string, bool) { return "", false }}
	for _, example := range examples.FindAllStringSubmatch(page, -1) {
		name := "flow.yaml"
		if example[1] == "overlay" {
			name = "overlay.yaml"
			o.Overlays = []string{name}
		}
		files = append(files, txtar.File{Name: name, Data: []byte(example[2])})
	}
	for _, code := range module.FindAllStringSubmatch(page, -1) {
		files = append(files, txtar.File{Name: "module.lua", Data: []byte(code[1])})
	}
	o.ReadFile = archiveFiles(files)
	_, diags := Load("flow.yaml", o)
	if !foundHere(code) {
		if len(files) == 0 || len(diags) > 0 {
			t.Errorf("%d examples, which give:\n%v", len(files), diags)
		}
		return
	}
	if !slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Code == code }) {
		t.Errorf("the example gives:\n%v", diags)
	}
}
