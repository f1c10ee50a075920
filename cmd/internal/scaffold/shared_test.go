package scaffold

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write shared.txtar.gz, go.mod and go.sum of the Go template, and the examples")

const repository = "../../.."

// fromGuide makes the links of a page in docs/guide those of a page next to the
// protocol.
var fromGuide = strings.NewReplacer(
	"](../../proto/tea/plugin/v1/", "](",
	"](../../proto/go-plugin/", "](",
	"](../../", "](https://github.com/the-edge-agent/tea/blob/main/",
	"](writing-plugins.md", "](https://github.com/the-edge-agent/tea/blob/main/docs/guide/writing-plugins.md",
)

// sharedFiles returns what the archive must contain.
func sharedFiles(t *testing.T) []txtar.File {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-co", "--exclude-standard", "sdk", "examples/plugin-node", "examples/plugin-python", "examples/plugin-rust")
	list.Dir = repository
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	from := map[string]string{}
	names := []string{}
	add := func(name, file string) {
		names = append(names, name)
		from[name] = file
	}
	for file := range strings.Lines(string(out)) {
		file = strings.TrimSpace(file)
		switch name, example := strings.CutPrefix(file, "examples/"); {
		case strings.HasSuffix(file, "_test.go"):
		case strings.HasPrefix(file, "sdk/x/httpapi/"): // for the plugins of tea; no package of the SDK imports it
		case example && !strings.Contains(file, "/proto/"): // these are links to the protocol below
			add(name, file)
		case file == "sdk/go.mod" || strings.HasSuffix(file, ".go"):
			add(file, file)
		}
	}
	add("sdk/LICENSE", "LICENSE")
	add("proto/plugin.proto", "proto/tea/plugin/v1/plugin.proto")
	add("proto/go_plugin_broker.proto", "proto/go-plugin/go_plugin_broker.proto")
	add("docs/README.md", "docs/guide/plugin-protocol.md")
	var files []txtar.File
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(repository, from[name]))
		if os.IsNotExist(err) {
			continue // deleted, not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		if name == "docs/README.md" {
			data = []byte(fromGuide.Replace(string(data)))
		}
		files = append(files, txtar.File{Name: name, Data: data})
	}
	return files
}

// The SDK and the protocol inside the binary are those of the repository.
func TestSharedIsCurrent(t *testing.T) {
	t.Parallel()
	want := sharedFiles(t)
	if *update {
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(txtar.Format(&txtar.Archive{Files: want})); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("shared.txtar.gz", packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := readShared()
	if err != nil {
		t.Fatal(err)
	}
	text := func(files []txtar.File) map[string]string {
		all := map[string]string{}
		for _, f := range files {
			all[f.Name] = string(f.Data)
		}
		return all
	}
	if diff := cmp.Diff(text(want), text(got)); diff != "" {
		t.Errorf("shared.txtar.gz is not current; run `go test ./cmd/internal/scaffold -update`:\n%s", diff)
	}
}
