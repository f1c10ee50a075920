package host

import (
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/sdk/diag"
)

// CheckNodes finds out whether the workflow has the nodes, which may be given
// by paths such as sub/x: only the first part is looked at then. The error
// names the first that is not there.
func (wf *Workflow) CheckNodes(names ...string) error {
	for _, name := range names {
		first := name
		if i := strings.IndexAny(name, "/>[#"); i > 0 {
			first = name[:i]
		}
		if wf.graph.Node(first) != nil {
			continue
		}
		known := make([]string, len(wf.graph.Nodes))
		for i, n := range wf.graph.Nodes {
			known[i] = n.Name
		}
		err := fmt.Errorf("the workflow has no node %q", first)
		if hint := diag.Suggest(first, known); hint != "" {
			err = fmt.Errorf("%w; %s", err, hint)
		}
		return err
	}
	return nil
}
