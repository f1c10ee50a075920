package file_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestGlobs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, fits, not string // paths with spaces between
	}{
		{"*", "a a.md x/a x/y/a.md", ""},
		{"*.md", "a.md x/a.md x/.md", "a.mdx a.txt x.md/a"},
		{"a", "a x/a", "aa ab x/ab a/x"},
		{"/a", "", "a x/a"},
		{"x/*", "x/a x/.a", "x/y/a a x yx/a"},
		{"x/**", "x/a x/y/a", "a x yx/a"},
		{"x/", "x/a x/y/a", "a x yx/a"},
		{"**/a", "a x/a x/y/a", "xa x/xa a/x"},
		{"x/**/a", "x/a x/y/a x/y/z/a", "xa x/ya a"},
		{"**", "a x/a", ""},
		{"a*c", "ac abc x/abbc", "abcd a/c ab/c"},
		{"a**/c", "a/c ab/x/c", "c"},
		{"?", "a ä 日", "aa"},
		{"x?y", "xay", "x/y xy"},
		{"[abc]", "a c", "d ab"},
		{"[a-c]x", "ax cx x/bx", "dx x"},
		{"[!a-c]", "d ä x/e", "a b"},
		{"[^a]", "b", "a"},
		{"x[!a]y", "xby", "x/y xay"},
		{"x[+-9]y", "x+y x.y x0y x9y", "x/y xay"},
		{"x[/]y", "", "x/y xy"},
		{"x[/-0]y", "x0y", "x/y x.y"},
		{"x[.-/]y", "x.y", "x/y x0y"},
		{"[a-]", "a -", "b"},
		{"[\\]", "\\", "a"},
		{"[[.&~^]x", "[x .x &x ~x ^x", "ax"},
		{"{a,b}.md", "a.md x/b.md", "c.md {a,b}.md"},
		{"{a,b/c}", "a b/c", "x/a c"},
		{"{a,{b,c}d}", "a bd cd", "b d"},
		{"a,b", "a,b", "a b"},
		{"a}", "a}", "a"},
		{`\*`, "* x/*", "a"},
		{`\{a`, "{a", "a"},
		{"a.c", "a.c", "abc"},
		{"(a|b)+$", "(a|b)+$", "a"},
		{"a\nb", "a\nb", "ab"},
	} {
		g, err := file.Compile(test.pattern)
		if err != nil {
			t.Errorf("%q: %v", test.pattern, err)
			continue
		}
		for paths, fits := range map[string]bool{test.fits: true, test.not: false} {
			for path := range strings.SplitSeq(paths, " ") {
				if path != "" {
					want(t, fmt.Sprintf("%q fits %q", test.pattern, path), g.Match(path), fits)
				}
			}
		}
	}
	for _, pattern := range []string{"[", "[]", "a[b", "[!", "{a", "{a,{b}", "[z-a]", "\xff", strings.Repeat("*", 5000)} {
		if _, err := file.Compile(pattern); err == nil || tea.AsError(err).Type != tea.ValidationError {
			t.Errorf("%q gives %v, want a validation_error", pattern, err)
		}
	}
}
