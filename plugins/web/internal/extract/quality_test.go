package extract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/the-edge-agent/tea/plugins/web/internal/extract"
	"github.com/the-edge-agent/tea/plugins/web/internal/testsite"
)

// words splits a text; in scripts without spaces each character is a word.
func words(text string) map[string]int {
	count := map[string]int{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		if r := []rune(word)[0]; unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) {
			for _, r := range word {
				count[string(r)]++
			}
			continue
		}
		count[word]++
	}
	return count
}

// score is the F1 measure of the words of a text.
func score(got, want string) float64 {
	g, w := words(got), words(want)
	common, total := 0, 0
	for word, n := range w {
		common += min(n, g[word])
		total += n
	}
	for _, n := range g {
		total += n
	}
	if total == 0 {
		return 1
	}
	return 2 * float64(common) / float64(total)
}

// mainText is the text that the reader finds.
func mainText(t testing.TB, p testsite.Page) string {
	t.Helper()
	u := &url.URL{Scheme: "http", Host: "site.example", Path: p.Path}
	doc, err := extract.Parse(context.Background(), extract.Source{URL: u, ContentType: p.ContentType, Body: p.Body})
	if err != nil {
		t.Fatalf("%s: %v", p.Path, err)
	}
	return doc.Content(true).Text()
}

// The reader finds the main text of the pages of the test site at least as well
// as trafilatura, the best of the open tools.
func TestQualityNotBelowPeer(t *testing.T) {
	t.Parallel()
	pages := append(slices.Clip(testsite.Pages()), writtenPages(t)...)
	peer := peerTexts(t, pages)
	var ours, theirs float64
	for _, p := range pages {
		own, other := score(mainText(t, p), p.Main), score(peer[fileName(p)], p.Main)
		t.Logf("%-36s tea %.3f  trafilatura %.3f", p.Path, own, other)
		ours, theirs = ours+own, theirs+other
	}
	n := float64(len(pages))
	fmt.Printf("F1 of the main text of %d pages: tea %.4f, trafilatura %.4f\n", len(pages), ours/n, theirs/n)
	if ours < theirs {
		t.Errorf("F1 %.4f, trafilatura %.4f", ours/n, theirs/n)
	}
}

// writtenPages are pages in the manner of well-known kinds of sites, each with
// the text of its main content next to it.
func writtenPages(t *testing.T) []testsite.Page {
	t.Helper()
	names, err := filepath.Glob("testdata/pages/*.html")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d pages, %v", len(names), err)
	}
	var pages []testsite.Page
	for _, name := range names {
		pages = append(pages, testsite.Page{
			Path: "/" + filepath.Base(name), ContentType: "text/html", Body: []byte(readFile(t, name)), Main: readFile(t, strings.TrimSuffix(name, ".html")+".txt"),
		})
	}
	return pages
}

func fileName(p testsite.Page) string { return strings.TrimPrefix(p.Path, "/") }

// peerTexts runs trafilatura on the pages.
func peerTexts(t *testing.T, pages []testsite.Page) map[string]string {
	t.Helper()
	python := peerPython(t)
	dir := t.TempDir()
	for _, p := range pages {
		if err := os.WriteFile(filepath.Join(dir, fileName(p)), p.Body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/peer.py", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run trafilatura: %v", err)
	}
	texts := map[string]string{}
	if err := json.Unmarshal(out, &texts); err != nil {
		t.Fatal(err)
	}
	return texts
}

// peerPython is the Python that scripts/trafilatura has installed.
func peerPython(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(cache, "tea", "trafilatura-2.3.1", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("trafilatura is not installed: run scripts/trafilatura install")
		}
		t.Skip("trafilatura is not installed: run scripts/trafilatura install")
	}
	return python
}
