package graph

import (
	"maps"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Draft has what is known of a workflow file that may have mistakes, for editors.
type Draft struct {
	Names
	// Keys are the keys of the state that the file declares or writes, sorted.
	Keys []string
	// Reads are the expressions that read a key of the state.
	Reads []Name
}

// NewDraft compiles a workflow and ignores its mistakes.
func NewDraft(wf *spec.Workflow, env Env) Draft {
	var ignored diag.List
	g := compileWorkflow(wf, env, newParamChecker(env), &ignored)
	keys, _ := declaredKeys(g)
	d := Draft{Names: g.Names, Keys: slices.Sorted(maps.Keys(keys))}
	for _, r := range g.reads {
		d.Reads = append(d.Reads, Name{[]string{r.key}, r.pos})
	}
	return d
}
