package subproc

import (
	"fmt"
	"syscall"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestBinaryThatIsStillOpenForWritingIsStartedAgain(t *testing.T) {
	t.Parallel()
	starts := 0
	m, err := retryWhileBusy(t.Context(), func() (tea.Manifest, error) {
		if starts++; starts < 3 {
			return tea.Manifest{}, fmt.Errorf("start the plugin: %w", syscall.ETXTBSY)
		}
		return tea.Manifest{Name: "done"}, nil
	})
	if err != nil || m.Name != "done" || starts != 3 {
		t.Errorf("%v, %v after %d starts", m, err, starts)
	}
}
