package host_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/the-edge-agent/tea/host"
)

func TestServeFileThatIsAPipe(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "serve.yaml")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := host.LoadServe(file); err == nil {
		t.Error("a pipe was read")
	}
}
