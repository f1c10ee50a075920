package flowdir

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/host"
)

// offers counts what is offered.
type offers struct {
	host *host.Host
	n    int
}

func (o *offers) Load(file string) (*host.Workflow, error) {
	return o.host.Load(file, host.LoadOptions{})
}

func (o *offers) Offer(_ string, wf *host.Workflow, _ string) (string, error) {
	o.n++
	return wf.Name(), wf.Close()
}

func (o *offers) Withdraw(string) { o.n-- }

func (o *offers) Actions() string { return "" }

// A broken workflow is loaded again when it has changed, however many other files
// are in the directory.
func TestRepairedWorkflowAmongManyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(dir, name), "")
	}
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	o := &offers{host: h}
	d, err := New(dir, "workflow", o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d.maxTree = 2
	flow := filepath.Join(dir, "flow.yaml")
	write(t, flow, "nodes: [")
	d.Scan()
	d.Scan()
	if len(d.Problems()) != 1 || o.n != 0 {
		t.Errorf("%d workflows are offered, problems %v", o.n, d.Problems())
	}
	write(t, flow, "nodes: [{name: a}]")
	d.Scan()
	if len(d.Problems()) != 0 || o.n != 1 {
		t.Errorf("%d workflows are offered, problems %v", o.n, d.Problems())
	}
}

func TestIsWorkflow(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"a.yaml": true, "a.yml": true, "a_test.yaml": false, ".a.yaml": false, "a.yaml~": false, "a.yxml": false} {
		if IsWorkflow(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
