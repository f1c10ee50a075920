package execpath_test

import (
	"testing"

	"github.com/the-edge-agent/tea/host/internal/execpath"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	tests := []struct{ path, outer, frame string }{
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
		if got := execpath.Outer(test.path); got != test.outer {
			t.Errorf("Outer(%q) = %q, want %q", test.path, got, test.outer)
		}
		if got := execpath.Frame(test.path); got != test.frame {
			t.Errorf("Frame(%q) = %q, want %q", test.path, got, test.frame)
		}
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path, outer string
		want        bool
	}{
		{"a/b", "a", true},
		{"a>b/c", "a", true},
		{"a", "a", false},
		{"ab", "a", false},
		{"a", "", true},
		{"", "", false},
	} {
		if got := execpath.Below(test.path, test.outer); got != test.want {
			t.Errorf("Below(%q, %q) = %v", test.path, test.outer, got)
		}
	}
}
