package develop

import (
	"context"
	"os"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
)

// TestMain makes the test binary a plugin as well.
func TestMain(m *testing.M) {
	name := os.Getenv("TEA_DEVELOP_PLUGIN")
	if name == "" {
		os.Exit(m.Run())
	}
	nothing := func(context.Context, *tea.Request, struct{}) (struct{}, error) { return struct{}{}, nil }
	serve.Main(tea.Bundle{Name: name, Version: "1.2.3", Actions: []tea.Action{tea.NewAction(name+".nothing", "Does nothing.", nothing)}})
}
