package subproc

import (
	"context"
	"os"
	"testing"

	"github.com/the-edge-agent/tea/bench/bare"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func ownPath(b *testing.B) string {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	return self
}

// serveEcho is the plugin of package bare for tea.
func serveEcho() {
	serve.Main(tea.Bundle{Name: "echo", Version: "1.0.0", Actions: []tea.Action{
		tea.NewAction("echo.back", "Answers with its parameters.", func(_ context.Context, _ *tea.Request, p map[string]any) (map[string]any, error) {
			return p, nil
		}),
		tea.NewAction("echo.tokens", "Emits tokens.", func(ctx context.Context, req *tea.Request, p bare.TokenParams) (bare.TokenParams, error) {
			for i := range p.Tokens {
				req.Host.Token(ctx, bare.TokenText(i))
			}
			return p, nil
		}, tea.Streaming()),
	}})
}
