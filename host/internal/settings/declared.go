package settings

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// Declared is the set of top-level keys of settings that have a reader, with
// their schemas. It is immutable and safe for concurrent use.
type Declared struct {
	// schemas has a nil schema for a reader that accepts anything. A value must
	// match the schema of one of its key's readers: a plugin that the workflow
	// does not use must not make it invalid. The other readers report the
	// mismatch when they are opened.
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

// Keys returns the keys, sorted.
func (d Declared) Keys() []string { return slices.Sorted(maps.Keys(d.schemas)) }

// Check converts the values of ${VAR} to the types that their readers expect
// and makes paths absolute, in w and its subgraphs, and reports invalid values.
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
			return r.absent[under(path, at)] || takesSecrets(key) && expr.IsTemplate(r.text.Places[under(path, at)].Value)
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
	before := *diags
	for _, problem := range reported { // a variable that is not set is reported once
		if !slices.ContainsFunc(before, func(d diag.Diagnostic) bool { return d.Pos == problem.Pos }) {
			*diags = append(*diags, problem)
		}
	}
}

// takesSecrets reports whether the settings under a key can contain secrets of a
// run. The others are limits that apply to the whole workflow.
func takesSecrets(key string) bool { return key != EventsKey && key != LuaKey && key != PluginsKey }

// under returns the path of a value inside a key, such as llm.headers.X.
func under(key, inner string) string {
	if inner == "" || strings.HasPrefix(inner, "[") {
		return key + inner
	}
	return key + "." + inner
}

// report adds a problem to the diagnostics. The message names only the variable,
// because its value can be secret.
func (r *reading) report(key string, p jsonschema.Problem, diags *diag.List) {
	path := under(key, p.Path)
	switch {
	case p.Kind == jsonschema.UnknownMember:
		object := strings.TrimSuffix(path, diag.Key("x", p.Member)[1:])
		diags.Errorf(diagcode.UnknownSetting, r.text.KeyPos(path), r.keyHint(object, p.Member), "settings.%s: unknown key %q", object, p.Member)
	case p.Kind == jsonschema.MissingMember:
		diags.Errorf(diagcode.WrongSetting, r.text.ValuePos(path), "add it", "settings.%s needs the key %q", path, p.Member)
	case r.variables[path]:
		diags.Errorf(diagcode.WrongSetting, r.text.ValuePos(path), "set the variable to a valid value",
			"settings.%s: %s; the value of %q does not match", path, p.Wanted, r.text.Places[path].Value)
	default:
		hint, message := p.Hint, strings.TrimSuffix(p.Message, "; "+p.Hint)
		if text, ok := r.text.Places[path]; ok && r.quoted[path] {
			hint = "write it without quotes: " + text.Value
		} else if ok && expr.IsTemplate(text.Value) {
			hint = "this setting is read before the secrets; use a number or ${VARIABLE}"
		}
		diags.Errorf(diagcode.WrongSetting, r.text.ValuePos(path), hint, "settings.%s: %s", path, message)
	}
}

// keyHint returns the hint for an unknown key.
func (r *reading) keyHint(object, member string) string {
	names := r.members[object]
	if near := diag.Suggest(member, names); near != "" || len(names) == 0 {
		return near
	}
	return "there are: " + strings.Join(names, ", ")
}

// The keys that the host reads itself. The host's bundles declare their own.
const (
	EventsKey  = "events"
	LuaKey     = "lua"
	PluginsKey = "plugins"
	TraceKey   = "trace"
)

// Lua is settings.lua.
type Lua struct {
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty" minimum:"0" doc:"timeout of one script, including its calls of actions; default 30"`
	MemoryMB       float64 `json:"memory_mb,omitempty" minimum:"0" doc:"maximum growth of the heap while a script runs; default 256"`
}

// Plugins is settings.plugins: the limits of all plugins, and different limits
// under the names of plugins.
type Plugins struct {
	CallTimeoutSeconds  float64 `json:"call_timeout_seconds,omitempty" minimum:"0" doc:"timeout of a silent plugin during a call without timeout_seconds; default 300"`
	StartTimeoutSeconds float64 `json:"start_timeout_seconds,omitempty" minimum:"0" doc:"timeout of the start; default 30, or what the plugin declares"`
	SwapTimeoutSeconds  float64 `json:"swap_timeout_seconds,omitempty" minimum:"0" doc:"time that calls wait at most while a new version of a plugin with an exclusive resource takes over; default 30"`
	MemoryMB            float64 `json:"memory_mb,omitempty" minimum:"16" doc:"memory of the process; default three quarters of the machine's memory"`
	CPU                 float64 `json:"cpu,omitempty" minimum:"0" doc:"number of processors; default all"`
	OpenFiles           float64 `json:"open_files,omitempty" minimum:"16" doc:"number of open files; default: tea's"`
}

// pluginLimits is the schema of settings.plugins.
func pluginLimits() *schema.Schema {
	all := schema.Of[Plugins]()
	all.AdditionalProperties = schema.Of[Plugins]()
	return all
}

// Trace is settings.trace.
type Trace struct {
	Exporter string            `json:"exporter,omitempty" enum:"console,file,otlp" doc:"destination of spans; default file if file is set, else none"`
	Endpoint string            `json:"endpoint,omitempty" doc:"the collector's address; default http://localhost:4318"`
	File     string            `json:"file,omitempty" format:"path" doc:"the file that spans are appended to"`
	Headers  map[string]string `json:"headers,omitempty" secret:"true" doc:"sent with each request to the collector"`
	Contents bool              `json:"contents,omitempty" doc:"also record the inputs and outputs of models and actions"`
}

// Events is settings.events.
type Events struct {
	MaxMB   float64 `json:"max_mb,omitempty" minimum:"1" maximum:"4096" doc:"maximum size of the log of a run's events; default 16"`
	ValueKB float64 `json:"value_kb,omitempty" minimum:"0" maximum:"1024" doc:"maximum size of each stored parameter set and result of a node; longer ones are cut; 0 stores none; default 16"`
}

// own returns the schemas of the host's own keys.
var own = sync.OnceValue(func() map[string]*schema.Schema {
	return map[string]*schema.Schema{
		EventsKey: schema.Of[Events](), LuaKey: schema.Of[Lua](), PluginsKey: pluginLimits(), TraceKey: schema.Of[Trace](),
	}
})
