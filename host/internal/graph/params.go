package graph

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// paramChecker checks the parameters of action nodes against the actions' schemas.
type paramChecker struct {
	actions Actions
	unread  []string
	refused []string
	broken  []string
	dynamic []string
	// schemas are compiled on demand, by action; nil for an action whose schema is not valid, which is reported for its
	// bundle.
	schemas map[string]*jsonschema.Schema
}

func newParamChecker(env Env) *paramChecker {
	return &paramChecker{actions: env.Actions, unread: env.Unread, broken: env.Broken, dynamic: env.Dynamic, refused: env.Refused, schemas: map[string]*jsonschema.Schema{}}
}

// check reports mistakes in a call and returns the schema of its result, nil if
// unknown. Values of templates are checked at run time.
func (p *paramChecker) check(b *spec.ActionBody, diags *diag.List) *schema.Schema {
	return p.checkCall(b, fmt.Sprintf("`tea actions %s` shows the parameters", b.Uses.Value), diags)
}

// checkCall is check with a hint for mistakes in the parameters.
func (p *paramChecker) checkCall(b *spec.ActionBody, see string, diags *diag.List) *schema.Schema {
	if p.actions == nil || b.Uses.Pos == (diag.Pos{}) { // no name, already reported
		return nil
	}
	info, ok := p.actions.Describe(b.Uses.Value)
	if !ok {
		p.unknown(b, diags)
		return nil
	}
	s := p.schema(info)
	if s == nil {
		return info.Result
	}
	with := b.With
	if with == nil {
		with = &spec.Tree{Pos: b.Pos, Value: map[string]any{}}
	}
	given, isTemplate := with.Value, func(path string) bool { return expr.IsTemplate(with.Places[path].Value) }
	if with.Known != nil {
		given, isTemplate = with.Known, func(string) bool { return false }
	}
	_, _, problems := s.Fit(given, isTemplate)
	for _, problem := range problems {
		report(info, b, with, problem, see, diags)
	}
	p.calls(info.Params, with, with.Value, "", diags)
	checkKeywords(info, with, diags)
	warnNoTimeout(info, with, diags)
	return info.Result
}

// checkKeywords reports misspelled keywords in parameters that are JSON Schemas, where
// they would have no effect.
func checkKeywords(info tea.ActionInfo, with *spec.Tree, diags *diag.List) {
	given, _ := with.Value.(map[string]any)
	for name := range given {
		s := info.Params.Properties.Get(name)
		if s == nil || s.Format != "json-schema" {
			continue
		}
		var mistake *jsonschema.Error
		if errors.As(jsonschema.CheckKeywords(given[name]), &mistake) {
			pos := with.ValuePos(strings.TrimSuffix(name+"."+mistake.Path, "."))
			diags.Errorf(diagcode.WrongParameterType, pos, "keywords of your own begin with x-", "%s: the parameter %q: %s", info.Name, name, mistake.Message)
		}
	}
}

// warnUnmarked warns if on_unknown has no effect because a resume repeats the call. It ignores actions that only read,
// since they can call others, as agents do.
func (p *paramChecker) warnUnmarked(n *spec.Node, b *spec.ActionBody, diags *diag.List) {
	if n.OnUnknown == "" || n.Once || p.actions == nil {
		return
	}
	if info, ok := p.actions.Describe(b.Uses.Value); ok && !info.Once && !info.Reads {
		diags.Warnf(diagcode.KeysConflict, n.OnUnknownPos, "add effects: once, or remove on_unknown",
			"on_unknown has no effect: a resume repeats %s, which does not promise at most one effect", info.Name)
	}
}

// warnVerify warns of a check whose action may write.
func (p *paramChecker) warnVerify(uses spec.Text, diags *diag.List) {
	if p.actions == nil {
		return
	}
	if info, ok := p.actions.Describe(uses.Value); ok && !info.Reads {
		diags.Warnf(diagcode.KeysConflict, uses.Pos, "use an action that reads, such as http.get or modbus.read",
			"verify calls %s, which does not declare that it only reads: it could repeat the effect", info.Name)
	}
}

// timeoutKey is a key that both a node and an action can have.
const timeoutKey = "timeout_seconds"

// claim returns the call, and adds to its parameters those keys of the node that
// are parameters of the action, such as metadata next to action:. It also returns
// the names of these keys. In other forms it reports such a key, since the action
// does not get it; a timeout limits the node there.
func (p *paramChecker) claim(b *spec.ActionBody, diags *diag.List) (*spec.ActionBody, []string) {
	if b.Own == nil {
		return b, nil
	}
	own, _ := b.Own.Value.(map[string]any)
	names := slices.Sorted(maps.Keys(own))
	var info tea.ActionInfo
	if p.actions != nil {
		info, _ = p.actions.Describe(b.Uses.Value)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return info.Params == nil || !slices.Contains(info.Params.Properties.Names(), name)
	})
	if b.Inline {
		return b.Claim(names, diags), names
	}
	var given map[string]any
	if b.With != nil {
		given, _ = b.With.Value.(map[string]any)
	}
	for _, name := range names {
		if _, ok := given[name]; !ok && name != timeoutKey {
			diags.Errorf(diagcode.KeysConflict, b.Own.KeyPos(name), "put it under with:; if it describes the node, call it x-"+name,
				"%s has a parameter %q, but this %s is a key of the node", b.Uses.Value, name, name)
		}
	}
	return b, nil
}

// unknown reports an action that is in no stored manifest.
func (p *paramChecker) unknown(b *spec.ActionBody, diags *diag.List) {
	name := b.Uses.Value
	if flat, is := strings.CutPrefix(name, "actions."); is {
		name = strings.Replace(flat, "_", ".", 1)
	}
	hint := diag.Suggest(name, p.actions.Names())
	namespace, _, _ := strings.Cut(name, ".")
	switch {
	case slices.Contains(p.broken, namespace):
	case slices.Contains(p.dynamic, namespace):
		diags.Warnf(diagcode.UncheckedAction, b.Uses.Pos, "`tea plugin refresh "+namespace+" --workflow FILE` asks for them and stores them",
			"%s and its parameters are not checked: the actions of %s that depend on the settings are not stored", b.Uses.Value, namespace)
	case slices.Contains(p.unread, namespace):
		diags.Warnf(diagcode.UncheckedAction, b.Uses.Pos, refreshHint,
			"%s and its parameters are not checked: the manifest of the plugin %s is not stored", b.Uses.Value, namespace)
	case len(p.unread) > 0 && !strings.Contains(hint, `"`+namespace+"."): // otherwise it is a typo
		diags.Warnf(diagcode.UncheckedAction, b.Uses.Pos, refreshHint,
			"the action %q is in no stored manifest, and some plugins have none (%s)", b.Uses.Value, strings.Join(p.unread, ", "))
	default:
		switch {
		case slices.Contains(p.refused, namespace) && !slices.ContainsFunc(p.actions.Names(), func(name string) bool { return strings.HasPrefix(name, namespace+".") }):
			hint = "the plugin " + namespace + " was found, but cannot be used; a message says why"
		case elsewhere[name] != "":
			hint = elsewhere[name]
		case hint == "" && p.moduleAction(name) != "":
			hint = fmt.Sprintf("did you mean %q? The names of a module's actions begin with its namespace, or else the name of its file", p.moduleAction(name))
		case hint == "":
			hint = "`tea actions` lists the available actions; those of a plugin need its binary in a plugin directory"
		}
		diags.Errorf(diagcode.UnknownAction, b.Uses.Pos, hint, "unknown action %q", b.Uses.Value)
	}
}

// elsewhere has hints for actions that other tools provide under a namespace of tea.
var elsewhere = map[string]string{
	"code.sandbox": "code.execute runs each call in its own sandbox",
}

// moduleAction returns the only action with this name after its namespace, or "" if
// there is none or more than one.
func (p *paramChecker) moduleAction(name string) string {
	found := ""
	for _, other := range p.actions.Names() {
		if _, verb, _ := strings.Cut(other, "."); verb == name {
			if found != "" {
				return ""
			}
			found = other
		}
	}
	return found
}

const refreshHint = "`tea plugin refresh` starts the plugins and stores their manifests"

// warnNoTimeout warns of an on_timeout that has no effect. Next to with:,
// timeout_seconds belongs to the node, which is easy to overlook.
func warnNoTimeout(info tea.ActionInfo, with *spec.Tree, diags *diag.List) {
	const on = "on_timeout"
	given, _ := with.Value.(map[string]any)
	if given[on] == nil || given[timeoutKey] != nil || !slices.Contains(info.Params.Properties.Names(), timeoutKey) {
		return
	}
	diags.Warnf(diagcode.MissingParameter, with.KeyPos(on), "put both under with:",
		"%s: %s has no effect without the parameter %q", info.Name, on, timeoutKey)
}

func (p *paramChecker) schema(info tea.ActionInfo) *jsonschema.Schema {
	s, known := p.schemas[info.Name]
	if !known && info.Params != nil {
		s, _ = jsonschema.Compile(info.Params)
		p.schemas[info.Name] = s
	}
	return s
}

func report(info tea.ActionInfo, b *spec.ActionBody, with *spec.Tree, problem jsonschema.Problem, see string, diags *diag.List) {
	switch problem.Kind {
	case jsonschema.MissingMember:
		name := diag.Key(problem.Path, problem.Member)
		if b.Inline && spec.IsNodeKey(name) {
			see = fmt.Sprintf("put the parameters under with:; next to action:, %s belongs to the node", name)
		}
		diags.Errorf(diagcode.MissingParameter, with.ValuePos(problem.Path), cmp.Or(problem.Hint, see), "%s needs the parameter %q", info.Name, name)
	case jsonschema.UnknownMember:
		hint := cmp.Or(problem.Hint, see)
		diags.Errorf(diagcode.UnknownParameter, with.KeyPos(problem.Path), hint, "%s has no parameter %q", info.Name, problem.Path)
	case jsonschema.Misfit:
		what := "the parameters"
		if problem.Path != "" {
			what = fmt.Sprintf("the parameter %q", problem.Path)
		}
		diags.Errorf(diagcode.WrongParameterType, with.ValuePos(problem.Path), see, "%s: %s: %s", info.Name, what, problem.Message)
	}
}
