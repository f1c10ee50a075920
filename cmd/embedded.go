package teacmd

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// embedded are the workflow files in the program. They appear in the working
// directory, where relative paths of a workflow's data resolve, and in the
// directory where the run to resume began.
type embedded struct {
	workflow string
	files    fs.FS
	dirs     []string
}

// read implements [host.Embedded].
func (e *embedded) read(file string) ([]byte, bool) {
	if e.files == nil {
		return nil, false
	}
	for _, dir := range e.dirs {
		rel, err := filepath.Rel(dir, file)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if data, err := fs.ReadFile(e.files, "files/"+filepath.ToSlash(rel)); err == nil {
			return data, true
		}
	}
	return nil, false
}

// at adds the directory of a run's workflow.
func (e *embedded) at(workflowFile string) {
	if filepath.Base(workflowFile) == e.workflow {
		e.dirs = append(e.dirs, filepath.Dir(workflowFile))
	}
}

// arguments adds the command run and the workflow to a command line without a
// command.
func (e *embedded) arguments(args []string) []string {
	isCommand := func(c command) bool { return len(args) > 0 && c.name == args[0] }
	if e.workflow == "" || len(args) > 0 && (args[0] == "--help" || args[0] == "-h" || args[0] == "--version") || slices.ContainsFunc(commands(), isCommand) {
		return args
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args // an error about an unknown command
	}
	return append([]string{"run", e.workflow}, args...)
}
