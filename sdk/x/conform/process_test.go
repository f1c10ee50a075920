package conform_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/conform"
)

// The shell is killed after its wrong handshake; its child keeps the output
// open, for whose end go-plugin waits.
func TestWrapperWithAChildIsEnded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tea-plugin-wrapper")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho nonsense\nsleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := conform.Start(t.Context(), exec.CommandContext(t.Context(), path), io.Discard)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a wrong handshake is accepted")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Start does not return while the child runs")
	}
}
