package subproc_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
)

// The test binary is also the plugin, by its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "tea-plugin-greeter" {
		greeter()
	}
	os.Exit(m.Run())
}

func TestPluginThatIsNotThere(t *testing.T) {
	t.Parallel()
	plugins, _, err := subproc.Discover(t.Context(), subproc.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer plugins.Close()
	inst, err := plugins.Open(t.Context(), "nowhere", nil)
	var e *tea.Error
	if inst != nil || !errors.As(err, &e) || e.Type != tea.NotFound {
		t.Errorf("got %v and %v, want not_found", inst, err)
	}
	if err := plugins.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}
