package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// legacy translates a workflow of the_edge_agent.
type legacy struct {
	*report
	root *yaml.Node

	usesPython bool
	hasData    bool
	commands   *yaml.Node // of settings.llm.commands
	names      []string   // of the nodes
}

// topKeys are the keys at the top that stay.
var topKeys = []string{
	"name", "description", "version", "nodes", "edges", "state_schema", "initial_state", "variables", "settings", "config", "imports",
	"error_policy", "budget",
}

// hints say what replaces a key at the top that has no counterpart.
var hints = map[string]string{
	"observability":          "run with --trace-file or --otlp-endpoint; the page of `tea serve` shows runs",
	"input_schema":           "state_schema checks the input; `tea serve` has input of its own",
	"output_schema":          "check the final state in a test (`tea test`)",
	"extraction_schema":      "llm.call has a schema parameter, web.extract too",
	"validation_constraints": "data.validate checks a value against a JSON Schema",
	"semantic_probes":        "llm.call in a node of its own, or `tea test`",
	"validation_logging":     "the report of a run and `tea runs events` have all errors",
	"endpoint":               "`tea serve` offers each workflow over HTTP; see its guide",
}

func (t *legacy) translate() {
	if data := take(t.root, "data"); data != nil {
		t.hasData = true
		variables := get(t.root, "variables")
		if variables == nil {
			variables = mapping()
			set(t.root, "variables", variables)
		}
		set(variables, "data", data)
		t.add(translated, data, "`data` is `variables.data`")
	}
	for _, key := range keys(t.root) {
		if !slices.Contains(topKeys, key) && !strings.HasPrefix(key, "x-") {
			v := get(t.root, key)
			hint := hints[key]
			if hint == "" {
				hint = "it was ignored before, too, unless a program read it"
			}
			t.add(missing, v, "`%s` is kept as `x-%s`, which tea ignores: %s", key, key, hint)
			rename(t.root, key, "x-"+key)
		}
	}
	t.config()
	t.imports()
	t.schema()
	nodes := items(get(t.root, "nodes"))
	for _, n := range nodes {
		t.names = append(t.names, text(n, "name"))
	}
	for _, n := range nodes {
		t.node(n)
	}
	t.edges()
	t.settings()
	t.templates(t.root, "")
}

// config keeps the interrupts.
func (t *legacy) config() {
	config := get(t.root, "config")
	for _, key := range keys(config) {
		v := get(config, key)
		switch key {
		case "interrupt_before", "interrupt_after":
			if v.Kind == yaml.ScalarNode {
				set(config, key, sequence(v))
			}
		case "raise_exceptions":
			take(config, key)
			if v.Value == "false" {
				t.add(decide, v, "`raise_exceptions: false`: a failed node stops the run here; set `on_error: continue` in nodes after which the run should go on")
			}
		case "checkpoint_dir", "checkpoint":
			take(config, key)
			t.add(decide, v, "`config.%s` is the flag --checkpoint-dir of `tea run`; checkpoints of the old engine cannot be resumed", key)
		case "max_steps", "timeout_seconds", "max_concurrency", "parallel":
		default:
			rename(config, key, "x-"+key)
			t.add(missing, v, "`config.%s` is kept as `x-%s`, which tea ignores", key, key)
		}
	}
	if config != nil && len(config.Content) == 0 {
		take(t.root, "config")
	}
}

// imports removes the modules of Python.
func (t *legacy) imports() {
	list := get(t.root, "imports")
	var kept []*yaml.Node
	for _, im := range items(list) {
		path := text(im, "path")
		if strings.HasSuffix(path, ".lua") || get(im, "builtin") != nil || get(im, "plugin") != nil {
			kept = append(kept, im)
			continue
		}
		t.add(decide, im, "the Python module %s is not imported: name its directory in settings.python.path and call its functions with python.call", path+text(im, "package"))
	}
	if list == nil {
		return
	}
	if list.Content = kept; len(kept) == 0 {
		take(t.root, "imports")
	}
}

var schemaTypes = []string{"str", "int", "float", "bool", "list", "dict", "any", "string", "integer", "number", "boolean", "array", "object"}

// schema keeps the types that tea has.
func (t *legacy) schema() {
	schema := get(t.root, "state_schema")
	for _, key := range keys(schema) {
		v := get(schema, key)
		if v.Kind == yaml.MappingNode {
			if named := get(v, "type"); named != nil {
				t.typeName(key, named)
			} else {
				set(v, "type", scalar("any"))
			}
			for _, member := range keys(v) {
				if !slices.Contains([]string{"type", "default", "required", "reducer", "description"}, member) {
					t.add(missing, get(v, member), "`state_schema.%s.%s` is not checked", key, member)
					take(v, member)
				}
			}
			continue
		}
		t.typeName(key, v)
	}
}

func (t *legacy) typeName(key string, v *yaml.Node) {
	old := str(v)
	if slices.Contains(schemaTypes, old) {
		return
	}
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(old, "typing.")), "[")
	if !slices.Contains(schemaTypes, name) {
		name = "any"
	}
	if strings.HasPrefix(old, "Optional") || strings.Contains(old, "|") {
		name = "any"
	}
	v.SetString(name)
	t.add(translated, v, "the type `%s` of %s is `%s`", old, key, name)
}

// edges translates the edges.
func (t *legacy) edges() {
	var kept []*yaml.Node
	list := get(t.root, "edges")
	for _, e := range items(list) {
		switch text(e, "type") {
		case "entry":
			set(e, "from", scalar("__start__"))
			take(e, "type")
		case "finish":
			set(e, "to", scalar("__end__"))
			take(e, "type")
		case "normal", "conditional":
			take(e, "type")
		}
		t.guard(e)
		for _, key := range keys(e) {
			if !slices.Contains([]string{"from", "to", "type", "when", "condition", "targets", "default", "fan_in", "parallel", "description"}, key) && !strings.HasPrefix(key, "x-") {
				rename(e, key, "x-"+key)
			}
		}
		kept = append(kept, e)
	}
	if list != nil {
		list.Content = kept
	}
}

// guard translates the condition of an edge.
func (t *legacy) guard(e *yaml.Node) {
	when, condition := get(e, "when"), get(e, "condition")
	if get(e, "targets") != nil {
		t.add(decide, e, "`condition` with `targets` is Lua that returns the name of a target; check it")
		return
	}
	if condition == nil {
		if when != nil && (when.Tag == "!!bool" || str(when) == "true" || str(when) == "false") {
			if str(when) == "true" {
				take(e, "when")
			}
		} else if when != nil {
			when.SetString(expression(str(when)))
		}
		return
	}
	take(e, "condition")
	code := str(condition)
	if condition.Kind == yaml.MappingNode {
		code = text(condition, "value") + text(condition, "code")
		if k := text(condition, "type"); k != "expression" && k != "" {
			t.add(decide, condition, "a condition of the type %s is read as an expression", k)
		}
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(expression(code), "{{ "), " }}")
	switch {
	case when == nil || str(when) == "true":
		set(e, "when", scalar("{{ "+inner+" }}"))
	case str(when) == "false":
		set(e, "when", scalar("{{ not ("+inner+") }}"))
	case when.Tag == "!!int" || when.Tag == "!!float" || when.Tag == "!!null":
		set(e, "when", scalar("{{ ("+inner+") == "+strings.Replace(str(when), "null", "none", 1)+" }}"))
	default:
		set(e, "when", scalar("{{ ("+inner+") == '"+strings.ReplaceAll(str(when), "'", `\'`)+"' }}"))
	}
	t.add(translated, condition, "the condition of the edge is `when`")
}

var (
	bareName = regexp.MustCompile(`^(not |!)? *([A-Za-z_][A-Za-z0-9_]*)$`)
	negation = regexp.MustCompile(`!([A-Za-z_(])`)
	length   = regexp.MustCompile(`\blen\(([A-Za-z_][\w.]*(?:\[[^\[\]]*\])*)\)`)
	isNone   = regexp.MustCompile(`\bis (not )?None\b`)
	returned = regexp.MustCompile(`^return\s+`)
)

// expression returns a condition, which is an expression of Python or Jinja, as a template.
func expression(code string) string {
	code = strings.TrimSpace(code)
	if strings.Contains(code, "{{") || strings.Contains(code, "{%") {
		return code
	}
	code = returned.ReplaceAllString(code, "")
	if m := bareName.FindStringSubmatch(code); m != nil && !slices.Contains([]string{"true", "false", "True", "False", "none", "None"}, m[2]) {
		if m[1] != "" {
			return "{{ not state." + m[2] + " }}"
		}
		return "{{ state." + m[2] + " }}"
	}
	code = negation.ReplaceAllString(code, "not $1")
	code = length.ReplaceAllString(code, "($1 | length)")
	code = isNone.ReplaceAllStringFunc(code, strings.ToLower)
	return "{{ " + code + " }}"
}

var (
	variable = regexp.MustCompile(`(^|[^$])\$\{([A-Za-z_]\w*)\}`)
	dataRoot = regexp.MustCompile(`(\{[{%][^{}]*?)\bdata([.\[])`)
)

// templates rewrites the roots of templates that have another name.
func (t *legacy) templates(n *yaml.Node, key string) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag != "!!str" {
			return
		}
		if t.hasData {
			for old := ""; old != n.Value; {
				old = n.Value
				n.Value = dataRoot.ReplaceAllStringFunc(n.Value, func(s string) string {
					m := dataRoot.FindStringSubmatch(s)
					if strings.HasSuffix(m[1], ".") || strings.HasSuffix(m[1], "_") {
						return s
					}
					return m[1] + "variables.data\x00" + m[2]
				})
			}
			n.Value = strings.ReplaceAll(n.Value, "\x00", "")
		}
		if key != "code" && key != "run" {
			if variables := get(t.root, "variables"); variable.MatchString(n.Value) {
				n.Value = variable.ReplaceAllStringFunc(n.Value, func(s string) string {
					m := variable.FindStringSubmatch(s)
					if get(variables, m[2]) == nil {
						t.add(decide, n, "`${%s}` is not in `variables`; it stays as text", m[2])
						return s
					}
					return m[1] + "{{ variables." + m[2] + " }}"
				})
			}
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			t.templates(c, key)
		}
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			if k := n.Content[i].Value; k != "settings" && !strings.HasPrefix(k, "x-") {
				t.templates(n.Content[i+1], k)
			}
		}
	}
}

// settings adds what the translated nodes need.
func (t *legacy) settings() {
	settings := get(t.root, "settings")
	if settings == nil {
		if !t.usesPython && t.commands == nil {
			return
		}
		settings = mapping()
		t.root.Content = slices.Insert(t.root.Content, index(t.root, "nodes"), scalar("settings"), settings)
	}
	if t.usesPython {
		set(settings, "python", mapping("enabled", true, "dir", "."))
		t.add(decide, nil, "Python runs in processes of the machine's python3: `settings.python.enabled` allows it. Environment variables that the code reads must be in `settings.python.env`, packages in `requirements`")
	}
	if t.commands != nil {
		if model := get(settings, "llm"); model != nil && model.Kind == yaml.MappingNode {
			set(model, "commands", t.commands)
		} else {
			set(settings, "llm", mapping("commands", t.commands))
		}
	}
	if take(settings, "shell_providers") != nil {
		t.add(translated, settings, "`shell_providers` are programs in `settings.llm.commands`")
	}
	for _, key := range []string{"raise_exceptions", "parallel", "checkpoint_dir"} {
		if v := take(settings, key); v != nil {
			t.add(missing, v, "`settings.%s` has no counterpart", key)
		}
	}
}

// passThrough makes a node do nothing, and keeps its body in keys that tea ignores.
func (t *legacy) passThrough(n *yaml.Node, why string) {
	for _, key := range []string{"run", "uses", "with", "output", "language", "params"} {
		rename(n, key, "x-"+key)
	}
	t.add(missing, n, "node %s does nothing: %s", quoted(text(n, "name")), why)
}

func quoted(name string) string { return fmt.Sprintf("`%s`", name) }
