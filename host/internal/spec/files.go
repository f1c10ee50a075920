package spec

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
)

// maxSubgraphs bounds a chain of subgraphs, each in the one before.
const maxSubgraphs = 32

// subgraph reads the workflow behind a path in the file being read; nil where
// it is unusable. One that is used twice is read once.
func (d *decoder) subgraph(path Text) *Workflow {
	file := d.resolve(path.Value)
	if w, ok := d.loaded[file]; ok {
		return w
	}
	if i := slices.Index(d.chain, file); i >= 0 {
		chain := strings.Join(append(slices.Clone(d.chain[i:]), file), " -> ")
		d.errorf(diagcode.SubgraphCycle, path.Pos, "use a while_loop to repeat, or workflow.run with a condition", "the subgraphs contain each other: %s", chain)
		return nil
	}
	if len(d.chain) > maxSubgraphs {
		d.errorf(diagcode.SubgraphCycle, path.Pos, "", "subgraphs are nested more than %d levels deep", maxSubgraphs)
		return nil
	}
	data, err := d.read(file)
	if err != nil {
		d.errorf(diagcode.SubgraphUnreadable, path.Pos, "the path is relative to "+d.chain[len(d.chain)-1], "cannot read the subgraph %s: %v", file, withoutPath(err))
		return nil
	}
	w := d.document(file, filepath.Dir(file), data, false)
	d.loaded[file] = w
	return w
}

// module reads the Lua module of an import.
func (d *decoder) module(imp *Import) {
	data, err := d.read(d.resolve(imp.Name))
	switch {
	case err != nil:
		d.errorf(diagcode.ImportNotFound, imp.Pos, "the path is relative to "+d.chain[len(d.chain)-1], "cannot read the module %s: %v", imp.Name, withoutPath(err))
	case len(data) > source.MaxBytes:
		d.errorf(diagcode.FileTooLarge, imp.Pos, "", "the module %s has more than %d bytes", imp.Name, source.MaxBytes)
	default:
		imp.Code = data
	}
}

// resolve gives a path in the file as one that can be opened.
func (d *decoder) resolve(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(d.dir, path)
}
