package teacmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/host"
)

// A run can continue with the version before an edit, whose secrets the log hides.
func TestLogHidesTheSecretsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s := &Service{Host: h}
	file := filepath.Join(t.TempDir(), "flow.yaml")
	for _, key := range []string{"first-key", "second-key", "first-key"} {
		if err := os.WriteFile(file, []byte("settings: {trace: {headers: {X-Key: "+key+"}}}\nnodes: [{name: a}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		wf, err := s.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		defer wf.Close()
	}
	if text := s.Hide("first-key, second-key"); text != "***, ***" || len(s.masks) != 2 {
		t.Errorf("%s, %d masks", text, len(s.masks))
	}
}
