package spec

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// decoder builds the workflow of one file and reports mistakes that concern several
// values: keys that exclude or require each other.
type decoder struct {
	*loader
	grammar *grammar
	// dir is where relative paths start.
	dir   string
	where scope
}

func (d *decoder) workflow(root element) *Workflow {
	m := openMapping(root, d.grammar.workflow)
	w := &Workflow{
		File: root.node.File, Dir: d.dir,
		Name: m.string("name"), Description: m.string("description"), Version: m.string("version"),
		Schema:       d.schema(m.get("state_schema")),
		InitialState: m.object("initial_state"),
		Variables:    m.object("variables"),
		Settings:     d.settings(m.get("settings")),
		Imports:      d.imports(m.get("imports")),
		Nodes:        d.nodes(m.get("nodes")),
		Config:       d.config(m.get("config")),
		Errors:       d.errorPolicy(m.get("error_policy")),
		Budget:       d.budget(m.get("budget")),
		Queues:       d.queues(m.get("queues")),
		Serve:        d.serve(m.get("serve")),
	}
	if w.Name == "" {
		base := filepath.Base(w.File)
		w.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if given := m.get("settings"); given.is(source.Map) {
		w.SettingsText = newTree(given)
	}
	w.Edges = d.edges(m.get("edges"))
	d.checkInitialState(w.Schema, m.get("initial_state"))
	for _, key := range []string{"initial_state", "variables"} {
		d.warnTemplates(key, m.get(key))
	}
	return w
}

func (d *decoder) errorf(code string, pos diag.Pos, hint, format string, args ...any) {
	d.diags.Errorf(code, pos, hint, "%s%s", d.where, fmt.Sprintf(format, args...))
}

func (d *decoder) conflict(v element, hint, format string, args ...any) {
	d.errorf(diagcode.KeysConflict, v.pos(), hint, format, args...)
}

func (d *decoder) imports(list element) []Import {
	var imports []Import
	for _, item := range list.items() {
		if !item.is(source.Map) {
			continue
		}
		m := openMapping(item, d.grammar.imports)
		if imp, ok := d.imported(m); ok {
			imports = append(imports, imp)
		}
	}
	return imports
}

func (d *decoder) imported(m mapping) (Import, bool) {
	imp := Import{Pos: m.pos(), Version: m.string("version"), Namespace: m.string("namespace")}
	for _, kind := range []ImportKind{ImportPath, ImportBuiltin, ImportPlugin} {
		if !m.has(string(kind)) {
			continue
		}
		if imp.Kind != "" {
			d.conflict(m.key(string(kind)), "write a separate import for each", "an import cannot have both %s and %s", imp.Kind, kind)
			continue
		}
		imp.Kind, imp.Name = kind, m.string(string(kind))
		imp.Pos = m.get(string(kind)).pos()
	}
	if imp.Kind == "" {
		d.errorf(diagcode.MissingKey, m.pos(), "add path:, builtin: or plugin:", "the import has neither path, builtin nor plugin")
		return imp, false
	}
	if imp.Kind == ImportPlugin {
		name, version, found := strings.Cut(imp.Name, "@")
		if found && imp.Version != "" {
			d.conflict(m.key("version"), "keep one of the two", "the plugin has two versions")
		}
		if imp.Name = name; found {
			imp.Version = version
		}
	} else if m.has("version") {
		d.conflict(m.key("version"), "remove version", "version is for plugins only")
	}
	if imp.Kind == ImportPath {
		d.module(&imp)
	}
	d.checkNamespace(m)
	return imp, true
}

func (d *decoder) checkNamespace(m mapping) {
	if !m.has("namespace") {
		return
	}
	for _, r := range m.string("namespace") {
		if r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			d.errorf(diagcode.NamespaceProblem, m.get("namespace").pos(), "use letters, digits, _ and -", "namespace: %q cannot be the first part of an action's name", m.string("namespace"))
			return
		}
	}
	if m.string("namespace") == "" {
		d.errorf(diagcode.NamespaceProblem, m.get("namespace").pos(), "remove it, or give it a value", "namespace: the name is empty")
	}
}

func (d *decoder) config(v element) Config {
	c := Config{MaxSteps: DefaultMaxSteps, MaxItems: DefaultMaxItems}
	if !v.is(source.Map) {
		return c
	}
	m := openMapping(v, d.grammar.config)
	c.InterruptBefore, c.InterruptAfter = m.texts("interrupt_before"), m.texts("interrupt_after")
	if steps := m.int("max_steps"); steps != nil {
		c.MaxSteps = *steps
	}
	if items := m.int("max_items"); items != nil {
		c.MaxItems = *items
	}
	c.Timeout = orZero(m.duration("timeout_seconds"))
	c.MaxConcurrency = orZero(m.int("max_concurrency"))
	c.Parallel = d.parallel(m.get("parallel"))
	return c
}

func (d *decoder) budget(v element) Budget {
	if !v.is(source.Map) {
		return Budget{}
	}
	m := openMapping(v, d.grammar.budget)
	return Budget{
		Steps: orZero(m.int("steps")), Duration: orZero(m.duration("seconds")), Tokens: int64(orZero(m.float("tokens"))),
		USD: orZero(m.float("usd")), ToolCalls: orZero(m.int("tool_calls")),
	}
}

// target returns the name of a node, START and END in their canonical form.
func target(t Text) Text {
	t.Value = canonicalName(t.Value)
	return t
}

func targetOf(t *Text) *Text {
	if t == nil {
		return nil
	}
	canonical := target(*t)
	return &canonical
}

func canonicalName(name string) string {
	switch name {
	case "START":
		return Start
	case "END":
		return End
	}
	return name
}
