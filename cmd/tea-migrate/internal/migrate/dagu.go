package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// dagu translates a workflow of Dagu to a new document.
type dagu struct {
	*report
	root *yaml.Node
	name string

	env       *yaml.Node // of every command
	dir       string
	state     []string // the keys that commands can read as variables
	commands  *yaml.Node
	nodes     *yaml.Node
	onFailure string // the node for failures, or ""
}

// spellings are keys that Dagu has in two spellings, in the older one.
var spellings = map[string]string{
	"handler_on": "handlerOn", "continue_on": "continueOn", "retry_policy": "retryPolicy", "repeat_policy": "repeatPolicy", "timeout_sec": "timeoutSec",
	"precondition": "preconditions", "interval_sec": "intervalSec", "working_dir": "workingDir", "dir": "workingDir", "exit_code": "exitCode",
}

func (d *dagu) translate() {
	spell(d.root)
	for _, s := range items(get(d.root, "steps")) {
		spell(s)
		for _, key := range []string{"continueOn", "retryPolicy"} {
			spell(get(s, key))
		}
	}
	out := mapping("name", d.name)
	for _, key := range []string{"name", "description"} {
		if v := get(d.root, key); v != nil {
			set(out, key, v)
		}
	}
	d.commands, d.nodes, d.env = mapping(), sequence(), pairs(get(d.root, "env"))
	d.dir = text(d.root, "workingDir")
	initial := d.params()
	d.preconditions(d.root, nil)
	steps := d.steps()
	edges := d.build(steps)
	if len(initial.Content) > 0 {
		set(out, "initial_state", initial)
	}
	if len(d.commands.Content) > 0 {
		set(out, "settings", mapping("command", mapping("allow", d.commands)))
		d.add(decide, get(d.root, "steps"), "the commands are in `settings.command.allow`: they run with a small environment (PATH, LANG and `env`), at most once, and never in a directory that `dir` does not name")
	}
	if timeout := get(d.root, "timeoutSec"); timeout != nil {
		set(out, "config", mapping("timeout_seconds", timeout))
	}
	d.schedule(out)
	set(out, "nodes", d.nodes)
	if len(edges.Content) > 0 {
		set(out, "edges", edges)
	}
	d.leave(out, d.root, "the workflow", []string{
		"name", "description", "steps", "schedule", "params", "env", "type", "workingDir", "timeoutSec", "handlerOn", "preconditions",
	})
	out.HeadComment = d.root.HeadComment
	*d.root = *out
}

// spell renames the keys of a mapping to one spelling.
func spell(m *yaml.Node) {
	for _, key := range keys(m) {
		if old, ok := spellings[key]; ok {
			rename(m, key, old)
		}
	}
}

// pairs returns the variables of a mapping, or of a list of mappings or NAME=VALUE.
func pairs(n *yaml.Node) *yaml.Node {
	m := mapping()
	add := func(key, v string) {
		for i := 0; i < len(m.Content); i += 2 { // an earlier variable
			v = strings.ReplaceAll(v, "${"+m.Content[i].Value+"}", m.Content[i+1].Value)
		}
		set(m, key, scalar(v))
	}
	for _, one := range append([]*yaml.Node{n}, items(n)...) {
		for _, key := range keys(one) {
			add(key, text(one, key))
		}
		if key, v, ok := strings.Cut(str(one), "="); ok && identifier.MatchString(key) {
			add(key, v)
		}
	}
	return m
}

var (
	identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)
	assignment = regexp.MustCompile(`([A-Za-z_]\w*)=("[^"]*"|'[^']*'|\S*)|("[^"]*"|'[^']*'|\S+)`)
)

// params returns the parameters as an initial state.
func (d *dagu) params() *yaml.Node {
	n := get(d.root, "params")
	initial := mapping()
	if n == nil {
		return initial
	}
	if n.Kind == yaml.ScalarNode {
		for i, m := range assignment.FindAllStringSubmatch(str(n), -1) {
			key, v := m[1], m[2]
			if key == "" {
				key, v = "arg"+strconv.Itoa(i+1), m[3]
			}
			set(initial, key, scalar(strings.Trim(v, `"'`)))
		}
	} else {
		initial = pairs(n)
		for i, v := range items(n) {
			if v.Kind == yaml.ScalarNode && !strings.Contains(v.Value, "=") {
				set(initial, "arg"+strconv.Itoa(i+1), v)
			}
		}
	}
	for _, key := range keys(initial) {
		d.state = append(d.state, key)
		if v := text(initial, key); strings.ContainsAny(v, "`") || strings.Contains(v, "$(") {
			d.add(decide, n, "the parameter `%s` is the output of a command; it is text here: pass the value with --input", key)
		}
	}
	d.add(translated, n, "`params` are `initial_state`; --input sets others")
	return initial
}

// steps returns the steps in an order in which each follows those that it depends on, as
// levels of steps that do not depend on each other.
func (d *dagu) steps() (levels [][]*yaml.Node) {
	list := get(d.root, "steps")
	all := items(list)
	for i := 0; list.Kind == yaml.MappingNode && i < len(list.Content); i += 2 {
		if step := list.Content[i+1]; step.Kind == yaml.MappingNode {
			set(step, "name", list.Content[i])
			spell(step)
			all = append(all, step)
		}
	}
	depends := false
	for i, s := range all {
		if s.Kind == yaml.ScalarNode { // only a command
			all[i] = mapping("command", s)
			all[i].Line = s.Line
			s = all[i]
		}
		if text(s, "name") == "" {
			name := text(s, "id")
			if name == "" {
				name = "step" + strconv.Itoa(i+1)
			}
			set(s, "name", scalar(name))
		}
		if output := strings.TrimPrefix(text(s, "output"), "$"); identifier.MatchString(output) {
			d.state = append(d.state, output)
		}
		depends = depends || get(s, "depends") != nil
	}
	if !depends && text(d.root, "type") != "graph" {
		for _, s := range all {
			levels = append(levels, []*yaml.Node{s})
		}
		if len(all) > 1 {
			d.add(decide, list, "the steps run one after the other; versions of Dagu before `type: chain` started steps without `depends` together")
		}
		return levels
	}
	return d.levels(all)
}

// levels sorts steps by what they depend on.
func (d *dagu) levels(all []*yaml.Node) (levels [][]*yaml.Node) {
	names := map[string]bool{}
	for i, s := range all[min(1, len(all)):] {
		if text(d.root, "type") == "chain" && get(s, "depends") == nil {
			set(s, "depends", get(all[i], "name"))
		}
	}
	for len(all) > 0 {
		var level, rest []*yaml.Node
		for _, s := range all {
			ready := true
			for _, name := range append([]string{str(get(s, "depends"))}, texts(get(s, "depends"))...) {
				ready = ready && (name == "" || names[name])
			}
			if ready {
				level = append(level, s)
			} else {
				rest = append(rest, s)
			}
		}
		if len(level) == 0 { // a cycle, or an unknown step
			d.add(decide, rest[0], "the step `%s` depends on steps that do not exist, or on itself", text(rest[0], "name"))
			level, rest = rest[:1], rest[1:]
		}
		for _, s := range level {
			names[text(s, "name")], names[text(s, "id")] = true, true
		}
		levels, all = append(levels, level), rest
	}
	return levels
}

// texts returns the texts of a list.
func texts(n *yaml.Node) (list []string) {
	for _, v := range items(n) {
		list = append(list, str(v))
	}
	return list
}

// build appends the nodes and returns the edges.
func (d *dagu) build(levels [][]*yaml.Node) *yaml.Node {
	handlers := get(d.root, "handlerOn")
	if get(handlers, "failure") != nil || get(handlers, "exit") != nil {
		d.onFailure = "on failure"
	}
	edges, last := sequence(), "__start__"
	link := func(to string) {
		edges.Content = append(edges.Content, mapping("from", last, "to", to))
		last = to
	}
	for i, level := range levels {
		if len(level) == 1 {
			n := d.step(level[0])
			d.guard(n)
			d.nodes.Content = append(d.nodes.Content, n)
			link(text(n, "name"))
			continue
		}
		join := fmt.Sprintf("join %d", i+1)
		if last == "__start__" {
			d.nodes.Content = append(d.nodes.Content, mapping("name", "start"))
			link("start")
		}
		lua := "for _, r in ipairs(parallel_results) do\n  if not r.success then error(r.error) end\nend\nreturn {"
		for at, s := range level {
			n := d.step(s)
			d.nodes.Content = append(d.nodes.Content, n)
			edges.Content = append(edges.Content, mapping("from", last, "to", text(n, "name"), "type", "parallel", "fan_in", join))
			if output := strings.TrimPrefix(text(s, "output"), "$"); identifier.MatchString(output) {
				lua += fmt.Sprintf("\n  %s = parallel_results[%d].state.%s,", output, at+1, output)
			}
		}
		code := scalar(lua + "\n}\n")
		code.Style = yaml.LiteralStyle
		n := mapping("name", join, "fan_in", true, "run", code)
		d.guard(n)
		d.nodes.Content = append(d.nodes.Content, n)
		last = join
	}
	d.handlers(handlers, link)
	link("__end__")
	if d.onFailure != "" {
		last = d.onFailure
		d.handler(get(handlers, "failure"), d.onFailure)
		if exit := get(handlers, "exit"); exit != nil {
			d.handler(exit, "on exit after a failure")
			link("on exit after a failure")
		}
		d.nodes.Content = append(d.nodes.Content, mapping("name", "failed", "run", `error("a step has failed; see the errors of the run")`))
		link("failed")
	}
	return edges
}

// handlers appends the nodes after the last step.
func (d *dagu) handlers(handlers *yaml.Node, link func(string)) {
	for _, key := range []string{"success", "exit"} {
		if h := get(handlers, key); h != nil {
			d.handler(h, "on "+key)
			link("on " + key)
		}
	}
	if cancel := get(handlers, "cancel"); cancel != nil {
		d.add(missing, cancel, "a handler for cancellation: `tea serve` reports runs that were cancelled")
	}
}

func (d *dagu) handler(step *yaml.Node, name string) {
	n := mapping("name", name)
	if step != nil && step.Kind == yaml.MappingNode {
		step = clone(step, new(maxNodes))
		set(step, "name", scalar(name))
		n = d.step(step)
	}
	d.nodes.Content = append(d.nodes.Content, n)
}

// guard lets the handler run if a node fails.
func (d *dagu) guard(n *yaml.Node) {
	if d.onFailure != "" && get(n, "on_error") == nil {
		set(n, "fallback", scalar(d.onFailure))
	}
}

// schedule translates the schedule to triggers of tea serve.
func (d *dagu) schedule(out *yaml.Node) {
	schedule := get(d.root, "schedule")
	if schedule == nil {
		return
	}
	if schedule.Kind == yaml.MappingNode {
		for _, key := range []string{"stop", "restart"} {
			if v := get(schedule, key); v != nil {
				d.add(missing, v, "the schedule `%s`", key)
			}
		}
		schedule = get(schedule, "start")
	}
	triggers := sequence()
	for _, cron := range append([]string{str(schedule)}, texts(schedule)...) {
		if cron == "" {
			continue
		}
		trigger := mapping()
		if zone, rest, ok := strings.Cut(strings.TrimPrefix(cron, "CRON_TZ="), " "); ok && strings.HasPrefix(cron, "CRON_TZ=") {
			set(trigger, "cron", scalar(strings.TrimSpace(rest)))
			set(trigger, "timezone", scalar(zone))
		} else {
			set(trigger, "cron", scalar(cron))
		}
		triggers.Content = append(triggers.Content, trigger)
	}
	if len(triggers.Content) > 0 {
		set(out, "serve", mapping("triggers", triggers))
		d.add(translated, schedule, "`schedule` is a trigger of `tea serve`")
	}
}

// leave keeps the keys without a counterpart as x-KEY.
func (d *dagu) leave(to, from *yaml.Node, what string, known []string) {
	for _, key := range keys(from) {
		if !slices.Contains(known, key) && !strings.HasPrefix(key, "x-") {
			d.add(missing, get(from, key), "`%s` of %s is kept as `x-%s`, which tea ignores", key, what, key)
			set(to, "x-"+key, get(from, key))
		}
	}
}
