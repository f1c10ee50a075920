//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/graph/internal/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedFolder); dir != "" {
		fmt.Fprintln(os.Stderr, write(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// need skips a test where the library is not prepared. In CI that is a failure.
func need(t *testing.T) {
	t.Helper()
	if _, err := load(""); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	need(t)
	storetest.Run(t, Open)
}
