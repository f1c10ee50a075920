package spec

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// ConfigFile is the file name in positions inside [Options].Config.
const ConfigFile = "--config"

// Options configure the reading of a workflow file. The zero value reads from
// disk and from the process's environment.
type Options struct {
	// Overlays are files applied to the workflow, in order.
	Overlays []string
	// Config is JSON applied after them; "" for none.
	Config string
	// LookupEnv finds ${VAR} in settings; nil is os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// ReadFile reads every file; nil reads from disk, at most
	// source.MaxBytes + 1 bytes.
	ReadFile func(string) ([]byte, error)
	// Embedded returns a file that the program contains. It takes precedence over
	// the disk and is not used with ReadFile.
	Embedded Embedded
}

// Embedded returns the content of a file that the program contains, by its
// absolute path, and reports whether there is one. It is safe for concurrent
// use; the content is read only.
type Embedded func(file string) ([]byte, bool)

// Read returns the embedded file, or the result of fromDisk.
func (e Embedded) Read(file string, fromDisk func(string) ([]byte, error)) ([]byte, error) {
	if e != nil {
		abs, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		if data, ok := e(abs); ok {
			return data, nil
		}
	}
	return fromDisk(file)
}

// Load reads a workflow file with its overlays, imports and subgraphs. The
// diagnostics are sorted. The workflow is nil only if no part of it is usable; do
// not run it if the diagnostics contain an error.
func Load(file string, o Options) (*Workflow, diag.List) {
	l := newLoader(o)
	data, err := l.read(file)
	if err != nil {
		l.diags.Errorf(diagcode.FileUnreadable, diag.Pos{File: file}, "", "cannot read the workflow %s: %v", l.shown(file), withoutPath(err))
		return nil, *l.diags
	}
	return l.finish(l.document(file, filepath.Dir(file), data, true))
}

// Parse is [Load] for a workflow in memory; name is its file name in messages.
// Relative paths are relative to the current directory.
func Parse(name string, data []byte, o Options) (*Workflow, diag.List) {
	l := newLoader(o)
	return l.finish(l.document(name, ".", data, true))
}

// loader reads one workflow and the files it refers to.
type loader struct {
	options Options
	diags   *diag.List
	// chain has the files being read, each one a subgraph of the previous one.
	chain []string
	// loaded has the subgraphs by path.
	loaded  map[string]*Workflow
	deleted []deletedEdge
	// onDisk reports whether files have absolute names.
	onDisk bool
}

func newLoader(o Options) *loader {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	onDisk := o.ReadFile == nil
	if onDisk {
		o.ReadFile = func(file string) ([]byte, error) { return o.Embedded.Read(file, ReadFile) }
	}
	return &loader{options: o, onDisk: onDisk, diags: &diag.List{}, loaded: map[string]*Workflow{}}
}

func (l *loader) read(file string) ([]byte, error) { return l.options.ReadFile(file) }

// readNamed reads a file that the document refers to: a subgraph or a module.
func (l *loader) readNamed(file string) ([]byte, error) {
	if l.onDisk {
		return l.options.Embedded.Read(file, func(file string) ([]byte, error) { return confine.ReadRegular(file, source.MaxBytes) })
	}
	return l.options.ReadFile(file)
}

// ReadFile reads a file from disk, at most source.MaxBytes + 1 bytes.
func ReadFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, source.MaxBytes+1))
}

func (l *loader) finish(w *Workflow) (*Workflow, diag.List) {
	l.diags.Sort()
	return w, *l.diags
}

// document reads one file's content; overlays apply to the first file only.
func (l *loader) document(file, dir string, data []byte, first bool) *Workflow {
	root := source.Parse(file, data, l.diags)
	if root == nil {
		return nil
	}
	if root.Kind != source.Map {
		l.diags.Errorf(diagcode.DocumentNoMapping, root.Pos(""), "a workflow begins with keys such as name: and nodes:", "the document is %s, not a mapping", root.Kind)
		return nil
	}
	if first {
		root = l.overlay(root)
	}
	g := theGrammar()
	canonical := make(chan []byte, 1)
	go func() { canonical <- canonicalDocument(root) }() // the root no longer changes

	check := checker{diags: l.diags, grammar: g}
	check.mapping(root, "", g.workflow, "")

	l.chain = append(l.chain, filepath.Clean(file))
	d := decoder{loader: l, grammar: g, dir: dir}
	w := d.workflow(element{node: root})
	if first {
		l.chainedAgain(w)
	}
	l.chain = l.chain[:len(l.chain)-1]

	w.Digest = digest(w, <-canonical)
	return w
}

// withoutPath removes the path from an error, for messages that contain it.
func withoutPath(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	return err
}
