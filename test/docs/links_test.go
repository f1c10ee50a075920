// Package docs_test checks the repository's pages: their links, and the code,
// tests and packages that they name. It needs no binaries.
package docs_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// pages returns the Markdown files of the repository's root, docs, examples and findings.
func pages(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(root + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"docs", "examples", "findings"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if entry != nil && entry.IsDir() && entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			if filepath.Ext(path) == ".md" {
				all = append(all, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 100 {
		t.Fatalf("only %d pages", len(all))
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var (
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence = regexp.MustCompile("(?ms)^```.*?^```$")
)

// TestLinks follows every link to a file of the repository, and to a heading
// of a page.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, file := range pages(t) {
		for _, found := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, file), ""), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			path, heading, _ := strings.Cut(found[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere", file, found[1])
				continue
			}
			if heading != "" && filepath.Ext(target) == ".md" && !hasHeading(t, target, heading) {
				t.Errorf("%s: the link %s leads to no heading", file, found[1])
			}
		}
	}
}

var noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

func hasHeading(t *testing.T, file, anchor string) bool {
	t.Helper()
	for line := range strings.SplitSeq(read(t, file), "\n") {
		if text := strings.TrimLeft(line, "#"); text != line {
			text = noAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), "")
			if strings.ReplaceAll(text, " ", "-") == anchor {
				return true
			}
		}
	}
	return false
}

var function = regexp.MustCompile("`([a-z_/]+\\.go)` `([A-Za-z.]+)`")

// TestLifeOfACall finds each function that the page names in the file that it
// names.
func TestLifeOfACall(t *testing.T) {
	t.Parallel()
	rows := function.FindAllStringSubmatch(read(t, root+"/docs/life-of-a-call.md"), -1)
	if rows == nil {
		t.Error("the page names no functions")
	}
	for _, row := range rows {
		if !declares(read(t, filepath.Join(root, row[1])), row[2]) {
			t.Errorf("%s does not declare %s", row[1], row[2])
		}
	}
}

// declares reports whether Go code declares a function, or a method Type.Name.
func declares(code, name string) bool {
	declared := `(?m)^func ` + name + `[\[(]`
	if receiver, method, ok := strings.Cut(name, "."); ok {
		declared = `(?m)^func \((\w+ )?\*?` + receiver + `(\[\w+\])?\) ` + method + `\(`
	}
	return regexp.MustCompile(declared).MatchString(code)
}

var code = regexp.MustCompile("\\[`([A-Za-z0-9_.]+)`\\]\\((\\.\\./[^)]+\\.go)\\)")

// TestInvariants finds the code and the tests that the page names. Each promise
// has both.
func TestInvariants(t *testing.T) {
	t.Parallel()
	promises := 0
	for line := range strings.Lines(read(t, root+"/docs/invariants.md")) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if !strings.HasPrefix(line, "|") || len(cells) != 3 || cells[0] == "promise" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		promises++
		for i, cell := range cells[1:] {
			found := code.FindAllStringSubmatch(cell, -1)
			if found == nil && !strings.Contains(cell, ".txtar)") {
				t.Errorf("%q names no %s", cells[0], []string{"code", "test"}[i])
			}
			for _, f := range found {
				path := filepath.Join(root, "docs", f[2])
				if strings.HasSuffix(path, "_test.go") != (i == 1) {
					t.Errorf("%q: %s is in the wrong column", cells[0], f[2])
				}
				if !declares(read(t, path), f[1]) {
					t.Errorf("%q: %s does not declare %s", cells[0], f[2], f[1])
				}
			}
		}
	}
	if promises < 20 {
		t.Errorf("only %d promises", promises)
	}
}

var version = regexp.MustCompile("([0-9]+), \\[`(\\w+)`\\]\\((\\.\\./[^)]+\\.go)\\)")

// TestFormats compares the versions on the page with the constants that it names.
func TestFormats(t *testing.T) {
	t.Parallel()
	found := version.FindAllStringSubmatch(read(t, root+"/docs/formats.md"), -1)
	for _, f := range found {
		is := regexp.MustCompile(`(?m)^(const|\t)\s*` + f[2] + `\s+= ` + f[1] + `\b`)
		if !is.MatchString(read(t, filepath.Join(root, "docs", f[3]))) {
			t.Errorf("%s is not %s in %s", f[2], f[1], f[3])
		}
	}
	if len(found) < 10 {
		t.Errorf("only %d versions", len(found))
	}
}

// TestArchitecture compares the packages of the repository with the tables of the
// page: each is there, or covered by a parent that ends in "/...", and each path
// there exists.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for line := range strings.Lines(read(t, root+"/docs/architecture.md")) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, found := range regexp.MustCompile("`([a-z0-9/.-]+)`").FindAllStringSubmatch(cell, -1) {
			path := found[1]
			listed[path] = true
			if info, err := os.Stat(filepath.Join(root, strings.TrimSuffix(path, "/..."))); err != nil || !info.IsDir() {
				t.Errorf("docs/architecture.md has %s, which does not exist", path)
			}
		}
	}
	for _, path := range packages(t) {
		covered := listed[path]
		for at := path; at != "." && !covered; at = filepath.Dir(at) {
			covered = listed[at+"/..."]
		}
		if !covered {
			t.Errorf("docs/architecture.md lacks the package %s", path)
		}
	}
}

// packages returns the folders of all packages of all modules, relative to the root:
// those of go list, which takes seconds.
func packages(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list the Go files: %v", err)
	}
	var all []string
	for file := range strings.Lines(string(out)) {
		if dir := filepath.Dir(file); !strings.Contains("/"+dir+"/", "/testdata/") {
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) < 200 {
		t.Errorf("only %d packages", len(all))
	}
	return all
}

var jsonBlock = regexp.MustCompile("(?ms)^```json\\b[^\n]*\n(.*?)^```$")

// TestJSONBlocks reads every block of JSON: configuration to copy, or output, which can have
// several values.
func TestJSONBlocks(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, block := range jsonBlock.FindAllStringSubmatch(read(t, page), -1) {
			values := json.NewDecoder(strings.NewReader(block[1]))
			for values.More() {
				if err := values.Decode(new(any)); err != nil {
					t.Errorf("%s: %v:\n%s", page, err, block[1])
					break
				}
			}
		}
	}
}
