package spec

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// maxSubgraphs bounds the nesting of subgraphs.
const maxSubgraphs = 32

// subgraph reads the workflow at a path in the current file; nil if it is unusable.
// Each file is read once.
func (d *decoder) subgraph(path Text) *Workflow {
	file := d.resolve(path.Pos, path.Value)
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
	data, err := d.readNamed(file)
	if err != nil {
		d.errorf(diagcode.SubgraphUnreadable, path.Pos, relativeTo(path.Pos), "cannot read the subgraph %s: %v", d.shown(file), withoutPath(err))
		return nil
	}
	w := d.document(file, filepath.Dir(file), data, false)
	d.loaded[file] = w
	return w
}

// module reads the Lua module of an import.
func (d *decoder) module(imp *Import) {
	imp.Path = d.resolve(imp.Pos, imp.Name)
	data, err := d.readNamed(imp.Path)
	switch {
	case err != nil:
		d.errorf(diagcode.ImportNotFound, imp.Pos, relativeTo(imp.Pos), "cannot read the module %s: %v", d.shown(imp.Path), withoutPath(err))
	case len(data) > source.MaxBytes:
		d.errorf(diagcode.FileTooLarge, imp.Pos, "", "the module %s has more than %d bytes", imp.Name, source.MaxBytes)
	default:
		imp.Code = data
	}
}

// resolve makes a path relative to the working directory. The path is relative to
// the file that contains it, which can be an overlay.
func (d *decoder) resolve(at diag.Pos, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dirOf(at.File, d.chain[len(d.chain)-1], d.dir), path)
}

// DirOf returns the directory to which paths in a file are relative: the directory
// of the workflow or of an overlay, or the working directory for the command line.
func (w *Workflow) DirOf(file string) string { return dirOf(file, filepath.Clean(w.File), w.Dir) }

func dirOf(file, workflow, dir string) string {
	switch {
	case filepath.Clean(file) == workflow:
		return dir
	case file == ConfigFile:
		return "."
	}
	return filepath.Dir(file)
}

func relativeTo(at diag.Pos) string {
	if at.File == ConfigFile {
		return "the path is relative to the working directory"
	}
	return "the path is relative to " + at.File
}

// shown returns a file's name for messages: absolute for a file on disk.
func (l *loader) shown(file string) string {
	if abs, err := filepath.Abs(file); err == nil && l.onDisk {
		return abs
	}
	return file
}
