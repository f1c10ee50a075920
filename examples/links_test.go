package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks follows every link to a file of the repository, and to a heading
// of a page.
func TestLinks(t *testing.T) {
	t.Parallel()
	files := append(pages(t), "../docs/architecture.md", "../docs/life-of-a-call.md")
	for _, pattern := range []string{"README.md", "*/README.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(data), -1) {
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
			if heading != "" && !hasHeading(t, target, heading) {
				t.Errorf("%s: the link %s leads to no heading", file, found[1])
			}
		}
	}
}

var noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

func hasHeading(t *testing.T, file, anchor string) bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
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
	page, err := os.ReadFile("../docs/life-of-a-call.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := function.FindAllStringSubmatch(string(page), -1)
	if rows == nil {
		t.Error("the page names no functions")
	}
	for _, row := range rows {
		code, err := os.ReadFile(filepath.Join("..", row[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		declared := `func ` + row[2] + `\b`
		if receiver, method, ok := strings.Cut(row[2], "."); ok {
			declared = `func \(\w+ \*?` + receiver + `\) ` + method + `\(`
		}
		if !regexp.MustCompile(declared).Match(code) {
			t.Errorf("%s does not declare %s", row[1], row[2])
		}
	}
}
