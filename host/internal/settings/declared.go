package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/diag"
	"github.com/the-edge-agent/tea/sdk/jsonschema"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Declared is the set of top-level keys of settings that have a reader. It is
// immutable.
type Declared struct {
	// schemas has a nil schema for a reader that accepts anything. A value has
	// to fit one reader of its key: a plugin that the workflow does not use
	// must not make it invalid. The other readers report it when they are opened.
	schemas map[string][]*schema.Schema
}

// Declare collects the settings that the host and the bundles of the manifests
// read.
func Declare(manifests ...tea.Manifest) Declared {
	d := Declared{schemas: map[string][]*schema.Schema{}}
	d.add(own())
	for _, m := range manifests {
		d.add(m.Settings)
	}
	return d
}

func (d Declared) add(settings map[string]*schema.Schema) {
	for key, s := range settings {
		d.schemas[key] = append(d.schemas[key], s)
	}
}

// Keys lists the keys, sorted.
func (d Declared) Keys() []string { return slices.Sorted(maps.Keys(d.schemas)) }

// Check converts the values of ${VAR} to the types that their readers expect and
// makes paths absolute, in w and its subgraphs, and reports what does not fit.
func (d Declared) Check(w *spec.Workflow, diags *diag.List) {
	seen := map[*spec.Workflow]bool{}
	var visit func(w *spec.Workflow)
	visit = func(w *spec.Workflow) {
		if seen[w] {
			return
		}
		seen[w] = true
		for _, key := range slices.Sorted(maps.Keys(w.Settings)) {
			d.check(w, key, diags)
		}
		w.Settings = d.AbsolutePaths(w, w.Settings)
		for _, sub := range w.Subgraphs() {
			visit(sub)
		}
	}
	visit(w)
}

func (d Declared) check(w *spec.Workflow, key string, diags *diag.List) {
	path := diag.Key("", key)
	var reported diag.List
	for _, s := range d.schemas[key] {
		if s == nil {
			return
		}
		compiled, err := jsonschema.Compile(s)
		if err != nil {
			continue // not the workflow's fault
		}
		r := newReading(w.SettingsText)
		typed := r.typed(value.Clone(w.Settings[key]), s, path)
		problems := compiled.ValidateTemplated(typed, func(at string) bool {
			return r.absent[under(path, at)] || expr.IsTemplate(r.text.Places[under(path, at)].Value)
		})
		if len(problems) == 0 {
			w.Settings[key] = typed
			return
		}
		if len(reported) == 0 {
			for _, p := range problems {
				r.report(path, p, &reported)
			}
		}
	}
	*diags = append(*diags, reported...)
}

// under is the path of something inside a key, such as llm.headers.X.
func under(key, inner string) string {
	if inner == "" || strings.HasPrefix(inner, "[") {
		return key + inner
	}
	return key + "." + inner
}

// report adds a problem to the diagnostics. The value of a variable may be
// secret: the message names the variable only.
func (r *reading) report(key string, p jsonschema.Problem, diags *diag.List) {
	path := under(key, p.Path)
	switch {
	case p.Kind == jsonschema.UnknownMember:
		object := strings.TrimSuffix(path, diag.Key("x", p.Member)[1:])
		diags.Errorf(diagcode.UnknownSetting, r.text.KeyPos(path), r.meant(object, p.Member), "settings.%s has no key %q", object, p.Member)
	case p.Kind == jsonschema.MissingMember:
		diags.Errorf(diagcode.WrongSetting, r.text.ValuePos(path), "add it", "settings.%s needs the key %q", path, p.Member)
	case r.variables[path]:
		diags.Errorf(diagcode.WrongSetting, r.text.ValuePos(path), "give the variable a value that fits",
			"settings.%s: %s; what %q gives does not fit", path, p.Wanted, r.text.Places[path].Value)
	default:
		hint := ""
		if text, ok := r.text.Places[path]; ok && r.quoted[path] {
			hint = "write it without quotes: " + text.Value
		}
		diags.Errorf(diagcode.WrongSetting, r.text.ValuePos(path), hint, "settings.%s: %s", path, p.Message)
	}
}

// meant returns the hint for a key that does not exist.
func (r *reading) meant(object, member string) string {
	names := r.members[object]
	if near := diag.Suggest(member, names); near != "" || len(names) == 0 {
		return near
	}
	return "there are: " + strings.Join(names, ", ")
}
