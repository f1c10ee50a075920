package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/the-edge-agent/tea/host/internal/catalog"
	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/settings"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// LoadOptions change what is read. The zero value reads the file as it is.
type LoadOptions struct {
	// Overlays are files applied to the workflow, in order.
	Overlays []string
	// Config is JSON applied after them.
	Config string
	// Strict adds the checks of `tea validate --strict` and makes warnings errors.
	Strict bool
	// LookupEnv finds ${VAR} in settings; nil is os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// DataDir returns the directory for the files of a workflow by its name: the
	// default root of file actions, and run.data_dir in templates. If DataDir is
	// nil, it is the directory of the workflow file.
	DataDir func(workflow string) string
	// Elsewhere describes bundles of another process. Bundles of this host take
	// precedence. The workflow can use their actions, which fail if this host
	// calls them.
	Elsewhere []tea.Manifest
	// Remote reports whether the workflow runs on other machines: the directories of
	// this machine are not checked.
	Remote bool

	// source has the content of files instead of the disk; nil for none.
	source *Source
	// relist ignores the stored descriptions of dynamic actions.
	relist bool
}

// Workflow is a loaded workflow that can be run many times. It is safe for
// concurrent use. Close it when its runs have ended, and before its host.
type Workflow struct {
	host     *Host
	spec     *spec.Workflow
	graph    *graph.Graph
	catalog  *catalog.Catalog
	lua      *script.Runtime
	options  LoadOptions
	warnings diag.List
	serve    *graph.Serve
	// load is wf.loadGraph as a function value, which runs share.
	load func(dir, path string) (*graph.Graph, error)
	// env is what the workflow was compiled with.
	env graph.Env

	declared settings.Declared
	closed   atomic.Bool
	// hidden are the secret settings of a workflow whose settings contain no
	// templates, so that they are the same for every run.
	hidden map[string]any
	hide   sync.Once
	// warnShort ensures that the warning about short secrets is logged once.
	warnShort sync.Once

	mu     sync.Mutex
	graphs map[string]*graph.Graph
	// catalogs are for runs whose settings contain secrets, by settings.
	catalogs map[string]*catalog.Bound
}

// Embedded returns the content of a file that the program contains, by its absolute
// path, and reports whether there is one. Its relative paths resolve like the paths of a
// file on disk, over which it takes precedence. It must be safe for concurrent use and
// return the same content each time.
type Embedded = spec.Embedded

// Diagnostics are the findings about a workflow file.
type Diagnostics = diag.List

// LacksAction reports whether an error of a run is due to a call of a missing action,
// for example from Lua. Another set of plugins may have it.
func LacksAction(err error) bool { return catalog.IsUnknownAction(err) }

// LacksPlugins reports whether the only mistakes in a workflow are missing actions or
// plugins. With another set of plugins it may be valid.
func LacksPlugins(diags Diagnostics) bool {
	lacks := false
	for _, d := range diags {
		if d.Severity != diag.Error {
			continue
		}
		missing := d.Code == diagcode.UnknownAction || d.Code == diagcode.ImportNotFound && strings.HasSuffix(d.Path, ".plugin")
		if !missing {
			return false
		}
		lacks = true
	}
	return lacks
}

// Load reads and checks a workflow. The caller must close it. The error is [Diagnostics]
// with all mistakes in the file, [ErrClosed], or the reason why a bundle cannot be used.
func (h *Host) Load(path string, o LoadOptions) (*Workflow, error) {
	embedded := h.o.Embedded
	if o.source != nil {
		embedded = o.source.read
	}
	s, diags := spec.Load(path, spec.Options{Overlays: o.Overlays, Config: o.Config, LookupEnv: o.LookupEnv, Embedded: embedded})
	return h.compile(s, diags, o)
}

// Parse is [Host.Load] from memory; name is the file's name in messages.
func (h *Host) Parse(name string, data []byte, o LoadOptions) (*Workflow, error) {
	s, diags := spec.Parse(name, data, spec.Options{Overlays: o.Overlays, Config: o.Config, LookupEnv: o.LookupEnv})
	return h.compile(s, diags, o)
}

// Validate returns all findings about a file, including warnings.
func (h *Host) Validate(path string, o LoadOptions) Diagnostics {
	wf, err := h.Load(path, o)
	if wf != nil {
		defer wf.Close()
		return wf.warnings
	}
	var diags Diagnostics
	if errors.As(err, &diags) {
		return diags
	}
	diags.Errorf(diagcode.FileUnreadable, diag.Pos{File: path}, "", "%v", err)
	return diags
}

func (h *Host) compile(s *spec.Workflow, diags diag.List, o LoadOptions) (*Workflow, error) {
	if h.closed.Load() {
		return nil, ErrClosed
	}
	if s == nil {
		return nil, diags
	}
	unread := len(h.unread())
	wf, err := h.compileOnce(s, slices.Clone(diags), o)
	if len(h.unread()) == unread {
		return wf, err
	}
	// Plugins were started to read their manifests, which may declare settings.
	if wf != nil {
		_ = wf.Close() // no bundle was opened
	}
	return h.compileOnce(s, diags, o)
}

func (h *Host) compileOnce(s *spec.Workflow, diags diag.List, o LoadOptions) (*Workflow, error) {
	declared := settings.Declare(append(h.manifests(), o.Elsewhere...)...)
	if s.DataDir = ""; o.DataDir != nil {
		s.DataDir = o.DataDir(s.Name)
	}
	declared.Check(s, &diags)
	s.DataDir = cmp.Or(s.DataDir, absolute(s.Dir))
	wf := &Workflow{host: h, spec: s, options: o, lua: script.New(luaOptions(s.Settings)), graphs: map[string]*graph.Graph{}, catalogs: map[string]*catalog.Bound{}, declared: declared}
	wf.load = wf.loadGraph
	var err error
	var dynamic *dynamicActions
	if wf.catalog, dynamic, err = h.catalog(s.Settings, o.relist); err != nil {
		return nil, err
	}
	if err := addElsewhere(wf.catalog, o.Elsewhere); err != nil {
		wf.Close()
		return nil, err
	}
	modules := wf.imports(s, &diags)
	for _, a := range h.o.Replace {
		wf.catalog.Replace(a)
	}
	wf.env = graph.Env{Lua: wf.lua, Actions: wf.catalog, Modules: modules.byNamespace, Broken: modules.broken, Settings: declared.Keys(), Unread: h.unread(), Refused: h.refused(), Dynamic: dynamic.missing}
	g, more := graph.Compile(s, wf.env)
	diags = append(append(diags, dynamic.problems...), more...)
	wf.compileServe(&diags)
	if g != nil && !o.Remote {
		diags = append(diags, graph.MissingDirs(g, missingDir(s.Settings))...)
	}
	if o.Strict && g != nil && !diags.HasErrors() {
		diags = append(diags, graph.Check(g)...)
		lookup := o.LookupEnv
		if lookup == nil {
			lookup = os.LookupEnv
		}
		diags = append(diags, g.UnsetEnv(lookup)...)
		for i := range diags {
			diags[i].Severity = diag.Error
		}
	}
	diags.Sort()
	if err := diags.Err(); err != nil || g == nil {
		wf.Close()
		return nil, diags
	}
	wf.graph, wf.warnings = g, diags
	return wf, nil
}

// modules are the Lua modules of a workflow and its subgraphs; each file is
// loaded once.
type modules struct {
	byPath, byNamespace map[string]*script.Module
	imports             []moduleImport
	// broken are the namespaces of modules that cannot be loaded.
	broken []string
}

// moduleImport is one import of a module.
type moduleImport struct {
	spec.Import
	namespace string
	module    *script.Module
	variables map[string]any
}

// importTimeout bounds the time to load all modules of a workflow, so that a check
// ends soon whatever the modules do.
const importTimeout = 5 * time.Second

// imports adds the imports of a workflow and its subgraphs to the catalog. No module
// runs before all are compiled, because they can require each other.
func (wf *Workflow) imports(s *spec.Workflow, diags *diag.List) *modules {
	m := &modules{byPath: map[string]*script.Module{}, byNamespace: map[string]*script.Module{}}
	wf.collect(s, diags, m)
	found := map[*script.Module]bool{}
	ctx, cancel := context.WithTimeout(context.Background(), importTimeout)
	defer cancel()
	for _, im := range m.imports {
		if done, again := found[im.module]; again {
			if done {
				wf.addModule(im, m, diags)
			} else {
				m.broken = append(m.broken, im.namespace)
			}
			continue
		}
		err := im.module.FindActions(ctx, m.byNamespace)
		if ctx.Err() != nil {
			diags.Errorf(diagcode.LuaSyntax, im.Pos, "move work from the top of the module into its actions",
				"import %s: loading the modules took longer than %s", im.Name, importTimeout)
			for _, other := range m.imports {
				m.broken = append(m.broken, other.namespace)
			}
			break
		}
		if found[im.module] = err == nil; err != nil {
			diags.Errorf(diagcode.LuaSyntax, im.Pos, "", "import %s: %v", im.Name, err)
			m.broken = append(m.broken, im.namespace)
			continue
		}
		wf.addModule(im, m, diags)
	}
	return m
}

func (wf *Workflow) collect(s *spec.Workflow, diags *diag.List, m *modules) {
	for _, im := range s.Imports {
		switch im.Kind {
		case spec.ImportPath:
			wf.compileModule(s, im, diags, m)
		case spec.ImportBuiltin, spec.ImportPlugin:
			wf.importBundle(im, diags)
		}
	}
	for _, sub := range s.Subgraphs() {
		wf.collect(sub, diags, m)
	}
}

func (wf *Workflow) importBundle(im spec.Import, diags *diag.List) {
	have := wf.catalog.Bundle(im.Name)
	if have == nil && slices.Contains(wf.host.unread(), im.Name) {
		diags.Warnf(diagcode.UncheckedAction, im.Pos, "`tea plugin refresh` starts the plugins and stores their manifests",
			"the import of the plugin %s is not checked: its manifest is not stored", im.Name)
		return
	}
	if have != nil && (have.Kind == "host") != (im.Kind == spec.ImportBuiltin) {
		other := spec.ImportPlugin
		if have.Kind == "host" {
			other = spec.ImportBuiltin
		}
		diags.Errorf(diagcode.ImportNotFound, im.Pos, fmt.Sprintf("write %s: %s", other, im.Name), "%q is not a %s but a %s", im.Name, im.Kind, other)
		return
	}
	if have == nil {
		hint := diag.Suggest(im.Name, wf.catalog.Bundles())
		if hint == "" {
			hint = "put tea-plugin-" + im.Name + " in a plugin directory, or name one with --plugins"
			if im.Kind == spec.ImportBuiltin {
				hint = "the host has no such bundle; to import a plugin, write plugin: " + im.Name + ", and " + hint
			}
		}
		diags.Errorf(diagcode.ImportNotFound, im.Pos, hint, "there is no %s %q", im.Kind, im.Name)
		return
	}
	if err := satisfies(have.Version, im.Version); err != nil {
		diags.Errorf(diagcode.ImportNotFound, im.Pos, "install another version of the plugin or change the constraint", "%s %s: %v", im.Kind, im.Name, err)
	}
	if im.Namespace != "" && im.Namespace != im.Name {
		if err := wf.catalog.Alias(im.Namespace, im.Name); err != nil {
			diags.Errorf(diagcode.NamespaceProblem, im.Pos, "choose another namespace", "%v", err)
		}
	}
}

func (wf *Workflow) compileModule(s *spec.Workflow, im spec.Import, diags *diag.List, m *modules) {
	namespace := im.Namespace
	if namespace == "" {
		namespace = strings.TrimSuffix(filepath.Base(im.Path), filepath.Ext(im.Path))
	}
	module := m.byPath[im.Path]
	if module == nil {
		if im.Code == nil {
			m.broken = append(m.broken, namespace)
			return // already reported by the loader
		}
		var err error
		if module, err = wf.lua.CompileModule(script.Source{Name: im.Path, Line: 1, Text: string(im.Code)}); err != nil {
			diags.Errorf(diagcode.LuaSyntax, im.Pos, "", "import %s: %v", im.Name, err)
			m.broken = append(m.broken, namespace)
			return
		}
		m.byPath[im.Path] = module
	}
	m.byNamespace[namespace] = module
	m.imports = append(m.imports, moduleImport{im, namespace, module, s.Variables})
}

// addModule adds the actions of a module to the catalog.
func (wf *Workflow) addModule(im moduleImport, m *modules, diags *diag.List) {
	if wf.catalog.HasModule(im.namespace, im.Path) {
		return
	}
	manifest, err := catalog.ModuleManifest(im.namespace, im.Path, im.module)
	if err != nil {
		diags.Warnf(diagcode.ModuleSchema, im.Pos, "parameters are not checked against it", "import %s: __tea_actions__: %v", im.Name, err)
	}
	if err := wf.catalog.Add("lua", manifest, catalog.Module(im.namespace, im.module, im.variables, m.byNamespace)); err != nil {
		diags.Errorf(diagcode.NamespaceProblem, im.Pos, "choose another namespace", "%v", err)
	}
}

// Name returns the workflow's name.
func (wf *Workflow) Name() string { return wf.spec.Name }

// Digest identifies the workflow's content.
func (wf *Workflow) Digest() string { return wf.spec.Digest }

// Warnings returns the findings that did not prevent the workflow from loading.
func (wf *Workflow) Warnings() Diagnostics { return wf.warnings }

// Actions returns the actions that the workflow can use, including imports.
func (wf *Workflow) Actions() []ActionEntry { return wf.catalog.Entries() }

// ErrClosed reports the use of a workflow or host after its Close.
var ErrClosed = errors.New("the workflow or its host was closed")

// Close closes the bundles that the workflow's runs opened. No run may be in progress.
func (wf *Workflow) Close() error {
	wf.closed.Store(true)
	return errors.Join(wf.catalog.Close(), wf.unbind())
}

// Release closes the bundles that the workflow's runs opened, and discards their
// secrets. No run may be in progress. The next run opens the bundles again. current
// reports whether the workflow is known to match its file; for a workflow of several
// files it is not known.
func (wf *Workflow) Release() (current bool, err error) {
	return len(wf.Files()) == 1 && len(wf.graphs) == 0, errors.Join(wf.catalog.Release(), wf.unbind())
}

// unbind closes the catalogs of runs whose settings contain secrets.
func (wf *Workflow) unbind() (err error) {
	wf.mu.Lock()
	defer wf.mu.Unlock()
	for _, c := range wf.catalogs {
		err = errors.Join(err, c.Close())
	}
	clear(wf.catalogs)
	return err
}

// CheckNodes checks that the workflow has nodes with these names. For a path such as
// sub/x, only the first part is checked. The error names the first unknown node.
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
		return fmt.Errorf("the workflow has no node %q%s", first, diag.Ending(first, known))
	}
	return nil
}
