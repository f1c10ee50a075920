package execpath_test

import (
	"testing"

	"github.com/the-edge-agent/tea/internal/execpath"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	tests := []struct{ path, outer, frame execpath.Path }{
		{"", "", ""},
		{"fetch", "", ""},
		{"fetch#2", "", ""},
		{"sub/fetch", "sub", "sub"},
		{"loop[0]/fetch", "loop[0]", "loop[0]"},
		{"loop[0]", "loop", "loop[0]"},
		{"each[3]", "each", "each[3]"},
		{"a>b~2/clean", "a>b~2", "a>b~2"},
		{"a>b~2", "a>b", "a>b~2"},
		{"n!act:1f/fetch", "n!act:1f", "n!act:1f"},
	}
	for _, test := range tests {
		if got := test.path.Outer(); got != test.outer {
			t.Errorf("Outer(%q) = %q, want %q", test.path, got, test.outer)
		}
		if got := test.path.Frame(); got != test.frame {
			t.Errorf("Frame(%q) = %q, want %q", test.path, got, test.frame)
		}
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path, outer execpath.Path
		want        bool
	}{
		{"a/b", "a", true},
		{"a>b/c", "a", true},
		{"a", "a", false},
		{"ab", "a", false},
		{"a", "", true},
		{"", "", false},
	} {
		if got := test.path.Below(test.outer); got != test.want {
			t.Errorf("Below(%q, %q) = %v", test.path, test.outer, got)
		}
	}
}

func TestBuildsPaths(t *testing.T) {
	t.Parallel()
	const run execpath.Path = ""
	for want, got := range map[execpath.Path]execpath.Path{
		"fetch":               run.Node("fetch").Visit(1),
		"fetch#2":             run.Node("fetch").Visit(2),
		"sub/fetch":           run.Node("sub").Node("fetch"),
		"loop[0]/fetch":       run.Node("loop").Index(0).Node("fetch"),
		"a>b~2/clean":         run.Node("a").Branch("b").Attempt(2).Node("clean"),
		"a>b":                 run.Node("a").Branch("b").Attempt(1),
		"n!llm.call:0000001f": run.Node("n").Call("llm.call", 0x1f),
		"n!a:ffffffff#3":      run.Node("n").Call("a", 0xffffffff).Visit(3),
		"n!k-1":               run.Node("n").Keyed("k-1"),
		"n:before":            run.Node("n").Mark(execpath.Before),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPathWithoutAttempts(t *testing.T) {
	t.Parallel()
	for path, want := range map[execpath.Path]execpath.Path{
		"fetch": "fetch", "a>b~2/clean": "a>b/clean", "each~2[3]": "each[3]", "each~12[3]/x#2": "each[3]/x#2",
		"n~2": "n", "a~2>b": "a>b", "n~2/m~3!llm.call:00": "n/m!llm.call:00", "n!k~2~3/m": "n!k/m", "a~b/c": "a~b/c", "a~/c~2x": "a~/c~2x",
	} {
		if got := path.WithoutAttempts(); got != want {
			t.Errorf("%q without attempts is %q, want %q", path, got, want)
		}
	}
}
