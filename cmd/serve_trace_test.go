package teacmd

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/the-edge-agent/tea/host/trace"
)

// Workflows that are changed while they are served do not leave their collectors open.
func TestCollectorsOfChangedWorkflowsAreClosed(t *testing.T) {
	t.Parallel()
	var c collectors
	options := func(n int) trace.CollectorOptions {
		return trace.CollectorOptions{Endpoint: fmt.Sprintf("http://127.0.0.1:1/%d", n), Logger: slog.New(slog.DiscardHandler)}
	}
	first, release, err := c.use(options(0))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		_, release, err := c.use(options(n + 1))
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	if n := len(c.all); n > maxIdleCollectors+1 {
		t.Errorf("%d collectors are open", n)
	}
	if again, _, err := c.use(options(0)); err != nil || again != first {
		t.Errorf("the collector of a run was replaced: %v", err)
	}
	release()
}
