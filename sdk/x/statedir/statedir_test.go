package statedir_test

import (
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/statedir"
)

func TestPath(t *testing.T) {
	home, state := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for _, c := range []struct{ variable, setting, want string }{
		{state, "", filepath.Join(state, "tea", "device")},
		{"", "", filepath.Join(home, ".local", "state", "tea", "device")},
		{"relative", "", filepath.Join(home, ".local", "state", "tea", "device")},
		{state, "/given", "/given"},
	} {
		t.Setenv(statedir.Variable, c.variable)
		if got, err := statedir.Path(c.setting, "device"); err != nil || got != c.want {
			t.Errorf("%v: got %q, %v", c, got, err)
		}
	}
}
