package execpath_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/internal/execpath"
)

// treeOf holds each path as its own value.
func treeOf(paths ...execpath.Path) *execpath.Tree[execpath.Path] {
	t := &execpath.Tree[execpath.Path]{}
	for _, p := range paths {
		t.Set(p, p)
	}
	return t
}

func below(t *execpath.Tree[execpath.Path], path execpath.Path) []execpath.Path {
	var out []execpath.Path
	for _, v := range t.Below(path) {
		out = append(out, v)
	}
	return out
}

func TestTreeKeepsPartsTogether(t *testing.T) {
	t.Parallel()
	tree := treeOf("a>c/x", "each", "each[1]", "a>b/x", "each[0]", "each[1]/y", "z", "a>c/y")
	want := []execpath.Path{"a>c/x", "a>c/y", "a>b/x", "each", "each[1]", "each[1]/y", "each[0]", "z"}
	if diff := cmp.Diff(want, below(tree, "")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]execpath.Path{"each[1]", "each[1]/y", "each[0]"}, below(tree, "each")); diff != "" {
		t.Errorf("below each: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]execpath.Path{"each[1]/y", "each[1]", "each[0]"}, tree.Cut("each")); diff != "" {
		t.Errorf("cut each: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]execpath.Path{"a>c/x", "a>c/y", "a>b/x", "each", "z"}, below(tree, "")); diff != "" || tree.Len() != 5 {
		t.Errorf("%d left, -want +got:\n%s", tree.Len(), diff)
	}
}

func TestTreeFindsWhatIsAround(t *testing.T) {
	t.Parallel()
	tree := treeOf("", "each[1]")
	for path, want := range map[execpath.Path]execpath.Path{"each[1]/x": "each[1]", "each[1]": "each[1]", "each[2]/x": "", "b": ""} {
		if got, ok := tree.Nearest(path); got != want || !ok {
			t.Errorf("Nearest(%q) = %q, %v, want %q", path, got, ok, want)
		}
	}
	tree.Delete("")
	if got, ok := tree.Nearest("b"); ok {
		t.Errorf("found %q in an empty tree", got)
	}
}

func TestTreeIsEmptyWhenEverythingIsDeleted(t *testing.T) {
	t.Parallel()
	var paths []execpath.Path
	for i := range 100 {
		paths = append(paths, execpath.Path("each").Index(i).Node("x"), execpath.Path("each").Index(i))
	}
	tree := treeOf(paths...)
	for _, v := range tree.Below("") {
		tree.Delete(v)
	}
	if got := below(tree, ""); len(got) > 0 || tree.Len() != 0 {
		t.Errorf("%d left: %v", tree.Len(), got)
	}
	tree.Set("a", "a")
	tree.Delete("b")
	if diff := cmp.Diff([]execpath.Path{"a"}, below(tree, "")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTreeKeepsReservedPositions(t *testing.T) {
	t.Parallel()
	tree := treeOf("a")
	tree.Reserve("a>b")
	tree.Reserve("a>c")
	tree.Set("a>c/x", "a>c/x")
	tree.Set("a>b/x", "a>b/x")
	tree.Delete("a>b/x")
	tree.Set("a>b/y", "a>b/y")
	if diff := cmp.Diff([]execpath.Path{"a", "a>b/y", "a>c/x"}, below(tree, "")); diff != "" || tree.Len() != 3 {
		t.Errorf("%d values, -want +got:\n%s", tree.Len(), diff)
	}
	tree.Unreserve("a>b")
	tree.Delete("a>b/y")
	tree.Set("a>b/z", "a>b/z")
	if diff := cmp.Diff([]execpath.Path{"a", "a>c/x", "a>b/z"}, below(tree, "")); diff != "" {
		t.Errorf("after it is unreserved: -want +got:\n%s", diff)
	}
}
