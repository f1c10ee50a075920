package migrate

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// stepKeys are the keys of a step that are translated.
var stepKeys = []string{
	"name", "id", "description", "command", "args", "script", "shell", "workingDir", "depends", "env", "output", "preconditions", "continueOn", "retryPolicy",
	"timeoutSec", "executor", "type", "config", "call", "run", "params",
}

// step returns the node of a step.
func (d *dagu) step(s *yaml.Node) *yaml.Node {
	name := text(s, "name")
	n := mapping("name", name)
	if v := get(s, "description"); v != nil {
		set(n, "description", v)
	}
	d.preconditions(s, n)
	executor := text(s, "type")
	if e := get(s, "executor"); e != nil {
		if executor = str(e); e.Kind == yaml.MappingNode {
			executor = text(e, "type")
		}
	}
	switch child := text(s, "call") + text(s, "run"); {
	case child != "":
		set(n, "subgraph", scalar(strings.TrimSuffix(strings.TrimSuffix(child, ".yml"), ".yaml")+workflowEnd))
		d.add(decide, s, "the step `%s` runs another workflow: translate it too, and pass its `params` in `input`", name)
	case executor == "http":
		d.request(s, n)
	case executor != "" && executor != "command" && executor != "shell":
		d.add(missing, s, "the step `%s` does nothing: the executor `%s` has no counterpart", name, executor)
		set(n, "x-executor", scalar(executor))
	case get(s, "command") != nil || get(s, "script") != nil:
		d.command(s, n)
	}
	if on := get(s, "continueOn"); text(on, "failure") == "true" || str(on) == "failed" || get(on, "exitCode") != nil {
		set(n, "on_error", scalar("continue"))
	}
	if retry := get(s, "retryPolicy"); retry != nil {
		policy := mapping()
		if limit := get(retry, "limit"); limit != nil {
			set(policy, "max_retries", limit)
		}
		if seconds := text(retry, "intervalSec"); seconds != "" && seconds != "0" {
			set(policy, "backoff_base_ms", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: seconds + "000"})
			set(policy, "backoff_max_ms", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: seconds + "000"})
		}
		set(policy, "retry_on", sequence("command_failed"))
		set(n, "retry", policy)
	}
	d.leave(n, s, "the step `"+name+"`", stepKeys)
	return n
}

var (
	notWord     = regexp.MustCompile(`\W+`)
	shellSyntax = regexp.MustCompile("[|&;<>()$`\\\\\"'*?\\[\\]#~!{}\n]")
	argvParam   = regexp.MustCompile(`\{[a-z][a-z0-9_]*\}`)
	positional  = regexp.MustCompile(`\$\{?[1-9]`)
)

// command makes a node run the command or script of a step.
func (d *dagu) command(s, n *yaml.Node) {
	name := strings.Trim(notWord.ReplaceAllString(text(s, "name"), "_"), "_")
	for base, i := name, 2; get(d.commands, name) != nil; i++ {
		name = base + "_" + string(rune('0'+i%10)) + strings.Repeat("_", i/10)
	}
	entry, with := mapping(), mapping("command", name)
	code, direct := d.code(s)
	reads := d.reads(code)
	shell := strings.Fields(text(s, "shell"))
	if get(s, "script") != nil && text(s, "command") != "" {
		shell = strings.Fields(text(s, "command"))
	}
	if len(shell) == 0 {
		shell = []string{"sh"}
	}
	// settings.command.env is for secrets: tea masks its values wherever they appear.
	env := clone(d.env, new(maxNodes))
	for own, i := pairs(get(s, "env")), 0; i < len(own.Content); i += 2 {
		set(env, own.Content[i].Value, own.Content[i+1])
	}
	if len(reads) == 0 && direct != nil {
		if words := []any{"env"}; len(env.Content) > 0 {
			for _, key := range keys(env) {
				words = append(words, key+"="+fromHost(text(env, key)))
			}
			direct.Content = append(sequence(words...).Content, direct.Content...)
		}
		set(entry, "argv", direct)
	} else {
		d.shell(shell, code, reads, env, entry, with)
	}
	dir := text(s, "workingDir")
	if dir == "" {
		dir = d.dir
	}
	if dir == "" {
		dir = "."
	}
	set(entry, "dir", scalar(dir))
	if timeout := get(s, "timeoutSec"); timeout != nil {
		set(entry, "timeout_seconds", timeout)
	} else {
		set(entry, "timeout_seconds", number(3600))
	}
	set(d.commands, name, entry)
	set(n, "uses", scalar("command.run"))
	set(n, "with", with)
	output := strings.TrimPrefix(text(s, "output"), "$")
	if identifier.MatchString(output) {
		set(n, "output", mapping(output, "{{ result.stdout | trim }}"))
	} else {
		set(n, "output", scalar("output of "+text(s, "name")))
		if get(s, "output") != nil {
			d.add(decide, get(s, "output"), "the output of the step `%s` is stored as a whole: `stdout`, `stderr`, `exit_code`", text(s, "name"))
		}
	}
}

// code returns the shell code of a step, and its words if no shell is needed.
func (d *dagu) code(s *yaml.Node) (code string, direct *yaml.Node) {
	if script := text(s, "script"); script != "" {
		return script, nil
	}
	command := get(s, "command")
	if command.Kind == yaml.SequenceNode {
		code = strings.Join(texts(command), " && ")
		if first := texts(command); len(first) > 1 && !strings.Contains(first[0], " ") && !slices.ContainsFunc(first, func(w string) bool { return shellSyntax.MatchString(w) }) {
			return strings.Join(first, " "), command // a program with its arguments
		}
	} else {
		code = str(command)
	}
	for _, arg := range append([]string{str(get(s, "args"))}, texts(get(s, "args"))...) {
		if arg != "" {
			code += " " + arg
		}
	}
	if shellSyntax.MatchString(code) {
		return code, nil
	}
	direct = sequence()
	for _, word := range strings.Fields(code) {
		direct.Content = append(direct.Content, scalar(word))
	}
	return code, direct
}

// reads returns the keys of the state that code reads as variables.
func (d *dagu) reads(code string) (list []string) {
	for _, key := range d.state {
		if !slices.Contains(list, key) && regexp.MustCompile(`\$\{?`+key+`\b`).MatchString(code) {
			list = append(list, key)
		}
	}
	if positional.MatchString(code) {
		for _, key := range d.state {
			if strings.HasPrefix(key, "arg") && !slices.Contains(list, key) {
				list = append(list, key)
			}
		}
	}
	return list
}

// shell makes a shell run the code. The code is in the settings; variables from the state
// come over standard input, quoted, and never become code.
func (d *dagu) shell(shell []string, code string, reads []string, env, entry, with *yaml.Node) {
	var assign, exports, set1 strings.Builder
	for _, key := range keys(env) {
		exports.WriteString("export " + key + "='" + strings.ReplaceAll(text(env, key), "'", `'\''`) + "'\n")
	}
	for _, key := range reads {
		quoted := `'{{ state.` + key + ` | string | replace("'", "'\\''") }}'`
		assign.WriteString(key + "=" + quoted + "\n")
		if strings.HasPrefix(key, "arg") {
			set1.WriteString(` "$` + key + `"`)
		}
	}
	argv := sequence()
	for _, word := range shell {
		argv.Content = append(argv.Content, scalar(word))
	}
	if set1.Len() > 0 {
		code = "set --" + set1.String() + "\n" + code
	}
	if argvParam.MatchString(code) || argvParam.MatchString(exports.String()) { // {name} would be a parameter of the command
		set(entry, "argv", argv)
		set(entry, "stdin", boolean(true))
		stdin := scalar(assign.String() + "{% raw %}" + exports.String() + code + "\n{% endraw %}")
		stdin.Style = yaml.LiteralStyle
		set(with, "stdin", stdin)
		return
	}
	if assign.Len() > 0 {
		code = "eval \"$(cat)\"\n" + code
		set(entry, "stdin", boolean(true))
		stdin := scalar(assign.String())
		stdin.Style = yaml.LiteralStyle
		set(with, "stdin", stdin)
	}
	text := scalar(fromHost(exports.String()) + strings.ReplaceAll(code, "${", "$${")) // the settings replace ${NAME}
	if strings.Contains(text.Value, "\n") {
		text.Style = yaml.LiteralStyle
	}
	argv.Content = append(argv.Content, scalar("-c"), text)
	i := index(entry, "stdin")
	if i < 0 {
		i = len(entry.Content)
	}
	entry.Content = slices.Insert(entry.Content, i, scalar("argv"), argv)
}

var hostVariable = regexp.MustCompile(`\$\{([A-Za-z_]\w*)\}`)

// fromHost lets the settings replace the variables of a text by those of tea's
// environment; one that is not set is empty.
func fromHost(text string) string { return hostVariable.ReplaceAllString(text, "$${$1:-}") }

var variableOnly = regexp.MustCompile(`^"?\$\{?(\w+)\}?"?$`)

// preconditions translates conditions on variables; n is nil for those of the workflow.
func (d *dagu) preconditions(s, n *yaml.Node) {
	list := get(s, "preconditions")
	if list == nil {
		return
	}
	all := items(list)
	if list.Kind != yaml.SequenceNode {
		all = []*yaml.Node{list}
	}
	var parts []string
	for _, c := range all {
		m := variableOnly.FindStringSubmatch(text(c, "condition"))
		expected := text(c, "expected")
		if m != nil && positional.MatchString("$"+m[1]) {
			m[1] = "arg" + m[1]
		}
		if m == nil || n == nil || strings.HasPrefix(expected, "re:") || !slices.Contains(d.state, m[1]) {
			d.add(decide, c, "the precondition `%s` is a node with command.run and an edge with `when` on its `exit_code`; write it", text(c, "condition")+str(c))
			continue
		}
		parts = append(parts, "(state."+m[1]+" | string) == '"+strings.ReplaceAll(expected, "'", `\'`)+"'")
	}
	if len(parts) > 0 {
		set(n, "if", scalar("{{ "+strings.Join(parts, " and ")+" }}"))
		d.add(decide, list, "a step whose precondition does not hold is skipped; Dagu also skips the steps after it")
	}
}

// request translates a step of the executor http.
func (d *dagu) request(s, n *yaml.Node) {
	words := strings.Fields(text(s, "command"))
	config := get(s, "config")
	if config == nil {
		config = get(get(s, "executor"), "config")
	}
	if len(words) != 2 {
		d.add(decide, s, "the request of the step `%s` is not METHOD URL; write it with http.request", text(s, "name"))
		return
	}
	with := mapping("method", strings.ToUpper(words[0]), "url", d.template(words[1]))
	for _, key := range []string{"headers", "query", "body"} {
		if v := get(config, key); v != nil {
			set(with, key, v)
		}
	}
	set(n, "uses", scalar("http.request"))
	set(n, "with", with)
	if output := strings.TrimPrefix(text(s, "output"), "$"); identifier.MatchString(output) {
		set(n, "output", mapping(output, "{{ result.text }}"))
	} else {
		set(n, "output", scalar("output of "+text(s, "name")))
	}
}

// template replaces the variables of a text.
func (d *dagu) template(s string) string {
	for _, key := range d.state {
		s = regexp.MustCompile(`\$\{`+key+`\}|\$`+key+`\b`).ReplaceAllLiteralString(s, "{{ state."+key+" }}")
	}
	return s
}
