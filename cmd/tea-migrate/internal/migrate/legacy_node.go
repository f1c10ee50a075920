package migrate

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// nodeKeys are the keys of nodes that stay.
var nodeKeys = []string{
	"name", "description", "metadata", "uses", "with", "output", "run", "steps", "type", "condition", "items", "item_var", "index_var",
	"max_concurrency", "fail_fast", "fan_in", "goto", "interrupt", "body", "max_iterations", "on_max", "subgraph", "input", "action",
	"on_error", "retry", "fallback", "timeout_seconds", "if", "parallel",
}

// bodyKeys are the keys that move into a step when a node becomes a map.
var bodyKeys = []string{"run", "uses", "with", "output", "language"}

// node translates a node, or a step of one.
func (t *legacy) node(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for _, pair := range [][2]string{{"id", "name"}, {"next", "goto"}, {"output_key", "output"}, {"store_as", "output"}, {"script", "run"}, {"params", "with"}} {
		if v := get(n, pair[0]); v != nil {
			rename(n, pair[0], pair[1])
		}
	}
	if a := get(n, "action"); a != nil && a.Kind == yaml.ScalarNode {
		rename(n, "action", "uses")
	}
	if t.maps(n); text(n, "type") == "dynamic_parallel" {
		t.mapNode(n)
	}
	if text(n, "type") == "while_loop" {
		t.loop(n)
	}
	if file := get(n, "subgraph"); file != nil && file.Kind == yaml.ScalarNode {
		if end := filepath.Ext(file.Value); end == ".yaml" || end == ".yml" {
			t.add(decide, file, "the subgraph %s of node %s must be translated, too, to the path in the new workflow", quoted(file.Value), quoted(text(n, "name")))
			file.SetString(strings.TrimSuffix(file.Value, end) + workflowEnd)
		}
	}
	t.code(n)
	t.action(n)
	t.failure(n)
	for _, key := range []string{"steps", "body"} {
		for _, step := range items(get(n, key)) {
			t.node(step)
		}
	}
	if a := get(n, "action"); a != nil {
		t.action(a)
	}
	for _, key := range keys(n) {
		known := slices.Contains(nodeKeys, key) && (key != "fail_fast" || text(n, "type") == "dynamic_parallel")
		if !known && !strings.HasPrefix(key, "x-") {
			t.add(missing, get(n, key), "`%s` of node %s is kept as `x-%s`, which tea ignores", key, quoted(text(n, "name")), key)
			rename(n, key, "x-"+key)
		}
	}
}

// maps turns parallel_each and strategy.matrix into a map.
func (t *legacy) maps(n *yaml.Node) {
	each, strategy := take(n, "parallel_each"), take(n, "strategy")
	var list *yaml.Node
	item := "item"
	switch {
	case each != nil:
		list = each
		rename(n, "max_workers", "max_concurrency")
	case strategy != nil:
		list, item = t.matrix(n, get(strategy, "matrix")), "matrix"
	default:
		return
	}
	set(n, "type", scalar("dynamic_parallel"))
	set(n, "items", list)
	set(n, "item_var", scalar(item))
	set(n, "index_var", scalar("item_index"))
	t.add(decide, n, "node %s is a map (`type: dynamic_parallel`); without `fan_in` the updates of its branches are merged. A `fan_in` node gets `parallel_results`", quoted(text(n, "name")))
}

// matrix stores the combinations of a matrix in a variable and returns its template.
func (t *legacy) matrix(n, matrix *yaml.Node) *yaml.Node {
	rows := []*yaml.Node{mapping()}
	for _, key := range keys(matrix) {
		var more []*yaml.Node
		for _, row := range rows {
			for _, v := range items(get(matrix, key)) {
				if len(more) < 1000 {
					more = append(more, mapping())
					last := more[len(more)-1]
					last.Content = append(slices.Clone(row.Content), scalar(key), v)
				}
			}
		}
		rows = more
	}
	name := "matrix_" + regexp.MustCompile(`\W`).ReplaceAllString(text(n, "name"), "_")
	variables := get(t.root, "variables")
	if variables == nil {
		variables = mapping()
		t.root.Content = slices.Insert(t.root.Content, index(t.root, "nodes"), scalar("variables"), variables)
	}
	list := sequence()
	list.Content = rows
	set(variables, name, list)
	return scalar("{{ variables." + name + " }}")
}

// mapNode moves the body of a map into steps.
func (t *legacy) mapNode(n *yaml.Node) {
	if get(n, "action") != nil || get(n, "steps") != nil || get(n, "subgraph") != nil {
		return
	}
	step := mapping("name", "each")
	for _, key := range bodyKeys {
		if v := take(n, key); v != nil {
			set(step, key, v)
		}
	}
	if body := take(n, "body"); body != nil {
		set(n, "steps", body)
	} else {
		set(n, "steps", sequence(step))
	}
}

// loop translates a while loop.
func (t *legacy) loop(n *yaml.Node) {
	if condition := get(n, "condition"); condition != nil {
		condition.SetString(expression(str(condition)))
	}
	if most := get(n, "max_iterations"); most == nil {
		set(n, "max_iterations", number(100))
		t.add(decide, n, "the loop %s gets `max_iterations: 100`", quoted(text(n, "name")))
	} else if i, err := strconv.Atoi(str(most)); err == nil && i > 1000 {
		set(n, "max_iterations", number(1000))
		t.add(decide, most, "the maximum of iterations is 1000, not %d", i)
	}
	set(n, "on_max", scalar("stop"))
	if run := get(n, "run"); run != nil && get(n, "body") == nil {
		step := mapping("name", "step", "run", take(n, "run"))
		if language := take(n, "language"); language != nil {
			set(step, "language", language)
		}
		set(n, "body", sequence(step))
	}
}

var (
	pythonKey   = regexp.MustCompile(`["']\s*:\s`)
	inQuotes    = regexp.MustCompile(`"(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])*'`)
	luaWords    = regexp.MustCompile(`\b(local|then|end|elseif)\b|\.\.`)
	pythonLines = regexp.MustCompile(`(?m)^\s*(import |from \w+ import|def \w+\(.*:\s*$|(if|for|while|elif|try|with|else|except)\b.*:\s*(#.*)?$)`)
)

// code translates the code of a node.
func (t *legacy) code(n *yaml.Node) {
	run := get(n, "run")
	language := strings.ToLower(str(take(n, "language")))
	if run == nil {
		return
	}
	if run.Kind == yaml.MappingNode {
		code := get(run, "code")
		if code == nil {
			code = get(run, "value")
		}
		if code == nil {
			code = scalar("")
		}
		if key := get(run, "output_key"); key != nil {
			set(n, "output", key)
		}
		if kind := text(run, "type"); kind == "expression" {
			t.expressionNode(n, code)
			return
		} else if kind != "" {
			language = kind
		}
		set(n, "run", code)
		run = code
	}
	source := str(run)
	if language == "" {
		language = "python"
		if strings.HasPrefix(strings.TrimSpace(source), "-- lua") || luaWords.MatchString(source) {
			language = "lua"
			// The key of a dict can be a Lua keyword.
			isDict := pythonKey.MatchString(source) && !luaWords.MatchString(inQuotes.ReplaceAllString(source, ""))
			if isDict || pythonLines.MatchString(source) {
				language = "python"
				t.add(decide, run, "the code of node %s has words of Lua and of Python; it is read as Python", quoted(text(n, "name")))
			}
		}
	}
	switch language {
	case "python":
		t.python(n, source)
	case "lua":
		if strings.Contains(source, "{{") {
			t.add(decide, run, "templates in Lua are not evaluated: read `state` and `variables` in node %s", quoted(text(n, "name")))
		}
	default:
		t.passThrough(n, "tea has no "+language+". Rules over facts can be Datalog in graph.query, or Lua")
	}
}

// expressionNode makes a node store the value of an expression.
func (t *legacy) expressionNode(n, code *yaml.Node) {
	template := str(code)
	if !strings.Contains(template, "{{") {
		template = "{{ " + strings.TrimSpace(template) + " }}"
	}
	key := text(n, "output")
	if key == "" {
		key = text(n, "name")
	}
	take(n, "run")
	t.store(n, mapping(key, template))
}

// store makes a node set keys of the state.
func (t *legacy) store(n, update *yaml.Node) {
	set(n, "uses", scalar("data.merge"))
	set(n, "with", mapping("sources", sequence(mapping())))
	set(n, "output", update)
}

// python makes a node run its Python.
func (t *legacy) python(n *yaml.Node, source string) {
	t.usesPython = true
	i := index(n, "run")
	code := scalar(source)
	code.Style, code.Line = yaml.LiteralStyle, n.Content[i+1].Line
	with := mapping("state", "{{ state }}")
	if t.hasData {
		set(with, "data", scalar("{{ variables.data }}"))
	}
	if fan := str(get(n, "fan_in")); fan == "true" {
		set(with, "parallel_results", scalar("{{ parallel_results }}"))
	}
	set(with, "code", code)
	n.Content[i].Value, n.Content[i+1] = "uses", scalar("python.run")
	n.Content = slices.Insert(n.Content, i+2, scalar("with"), with)
	t.add(translated, code, "the Python of node %s runs unchanged in `python.run`", quoted(text(n, "name")))
	if strings.Contains(source, "{{") || strings.Contains(source, "{%") || strings.Contains(source, "{#") {
		t.add(decide, code, "the code of node %s contains templates, whose values become part of the program; read `state` instead", quoted(text(n, "name")))
	}
	if strings.Contains(source, "environ") {
		t.add(decide, code, "the code of node %s reads environment variables; list them in `settings.python.env`", quoted(text(n, "name")))
	}
}

// failure translates retries and fallbacks.
func (t *legacy) failure(n *yaml.Node) {
	if on := get(n, "on_error"); on != nil && on.Kind == yaml.MappingNode {
		take(n, "on_error")
		switch text(on, "mode") {
		case "graceful":
			set(n, "on_error", scalar("continue"))
			t.add(decide, on, "`graceful` is `on_error: continue`: the error is in `state.__errors__` (a list), not in `__error__`")
		case "retry":
			policy := mapping()
			for _, pair := range [][2]string{{"max_retries", "max_retries"}, {"backoff_multiplier", "backoff_multiplier"}} {
				if v := get(on, pair[0]); v != nil {
					set(policy, pair[1], v)
				}
			}
			if delay, err := strconv.ParseFloat(text(on, "retry_delay"), 64); err == nil {
				set(policy, "backoff_base_ms", number(int(math.Round(delay*1000))))
			}
			set(n, "retry", policy)
			t.add(decide, on, "only errors that can pass are retried (time-outs, connections, rates); name others in `retry_on`")
		}
		if fallback := get(on, "fallback"); fallback != nil {
			if fallback.Kind == yaml.ScalarNode && slices.Contains(t.names, str(fallback)) {
				set(n, "fallback", fallback)
			} else {
				t.add(decide, fallback, "the fallback of node %s is not the name of a node; add a node for it", quoted(text(n, "name")))
			}
		}
	}
	retry := get(n, "retry")
	rename(retry, "base_delay_ms", "backoff_base_ms")
	rename(retry, "max_delay_ms", "backoff_max_ms")
}
