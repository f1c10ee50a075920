package examples

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/subproc"
)

// pages are those whose commands run: all that have one.
func pages(t *testing.T) []string {
	t.Helper()
	guide, err := filepath.Glob("../docs/guide/*.md")
	if err != nil || len(guide) < 10 {
		t.Fatalf("pages of the guide: %v, %v", guide, err)
	}
	return append(guide, "../README.md")
}

// otherwise are pages whose blocks have tests of their own, or are fragments
// of a reference.
var otherwise = []string{"clients.md", "llm.md", "lua.md", "plugins.md", "templates.md", "testing.md", "traces.md", "writing-plugins.md"}

func TestGuideCommands(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		if slices.Contains(otherwise, filepath.Base(page)) {
			continue
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			runPage(t, page, t.TempDir())
		})
	}
}

// TestGuideWorkflows loads every workflow of the guide.
func TestGuideWorkflows(t *testing.T) {
	t.Parallel()
	plugins, problems, err := subproc.Discover(t.Context(), subproc.Options{Dirs: []string{bin}, CacheDir: t.TempDir()})
	if err != nil || len(problems) > 0 {
		t.Fatalf("the plugins: %v, %v", err, problems)
	}
	h, err := host.New(host.Options{Plugins: plugins})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	for _, page := range pages(t) {
		if slices.Contains(otherwise, filepath.Base(page)) {
			continue
		}
		for line, text := range workflows(t, page) {
			t.Run(fmt.Sprintf("%s:%d", filepath.Base(page), line), func(t *testing.T) {
				t.Parallel()
				wf, err := h.Parse(page, []byte(text), host.LoadOptions{})
				if err != nil {
					t.Fatalf("line %d and following:\n%v", line, err)
				}
				if err := wf.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// workflows returns the ```yaml blocks of a page by their line; norun marks what
// is not a workflow or a wrong one.
func workflows(t *testing.T, page string) map[int]string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		words := strings.Fields(strings.TrimPrefix(line, "```"))
		if !strings.HasPrefix(line, "```yaml") || slices.Contains(words, "norun") {
			continue
		}
		end := i + 1 + slices.Index(lines[i+1:], "```")
		found[i+1] = strings.Join(lines[i+1:end], "\n") + "\n"
	}
	return found
}

// TestWritingPluginsPage runs the first steps of the page for authors in an empty
// directory, with the Go command's own caches, and then what the page says about
// the result.
func TestWritingPluginsPage(t *testing.T) {
	t.Parallel()
	blocks, _, err := commands("../docs/guide/writing-plugins.md")
	if err != nil || len(blocks) == 0 {
		t.Fatal(err)
	}
	if !strings.HasPrefix(blocks[0].script, "tea plugin new weather") {
		t.Fatalf("the page begins with %q", blocks[0].script)
	}
	source, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	var caches strings.Builder
	fmt.Fprintf(&caches, "export TEA_SOURCE='%s'\n", source) // go test builds without the files of new projects
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOFLAGS"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&caches, "export %s='%s'\n", name, strings.TrimSpace(string(value)))
	}
	got, err := shell(t.Context(), t.TempDir(), t.TempDir(), caches.String()+blocks[0].script+`
tea actions weather.hello --plugins bin
tea plugin docs bin/tea-plugin-weather
`)
	if err != nil {
		t.Fatal(err)
	}
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", got.code, got.stdout, got.stderr)
	}
	for _, want := range []string{"Ada", "weather.hello", "`weather.relay`", " passed, 0 failed"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the output lacks %q:\n%s\n%s", want, got.stdout, got.stderr)
		}
	}
}
