package plaintext_test

import (
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"short", 5, "short"},
		{"longer", 5, "longe... [cut off: 5 of 6 bytes shown]"},
		{"pão", 2, "p... [cut off: 1 of 4 bytes shown]"},
	} {
		if got := plaintext.Cut(c.text, c.limit); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}
