package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// renamed are actions with another name and the same parameters, except for keys.
var renamed = map[string]struct {
	name string
	keys map[string]string
	note string
}{
	"llm.chat":           {name: "llm.call"},
	"llm.embed":          {name: "embedding.create", keys: map[string]string{"content": "input", "text": "input"}},
	"memory.embed":       {name: "embedding.create", keys: map[string]string{"content": "input", "text": "input"}},
	"web.ai_scrape":      {name: "web.extract", keys: map[string]string{"output_schema": "schema"}},
	"memory.mem0.add":    {name: "ltm.store", note: "check its parameters: ltm.store has `key` and `value`"},
	"memory.mem0.search": {name: "ltm.search", note: "check its parameters: ltm.search has `query` and `limit`"},
	"agent.dispatch":     {name: "agent.run", note: "check its parameters: agent.run has `instructions` and `prompt` or a file of an agent"},
}

// without are namespaces and actions that have no counterpart.
var without = map[string]string{
	"reason.": "ask a model with llm.call, or plan.decompose", "rag.": "use vector.store, vector.query and llm.call", "llamaextract.": "use text.extract, or llm.call with a schema",
	"learn.": "store what was learned with ltm.store", "a2a.": "a2a.send talks to agents over the network; nodes of one workflow share the state",
	"academic.": "use web.search or http.get", "prolog.": "use Datalog in graph.query, or Lua",
	"retry.loop": "use a `while_loop` that evaluates and corrects", "reflection.loop": "use a `while_loop` that evaluates and corrects",
	"agent.parallel": "use a map (`type: dynamic_parallel`) of agent.run", "agent.sequential": "use a node with agent.run for each step",
	"agent.coordinate": "use agent.run with a team",
	"core.switch":      "use rules in `goto`", "notify": "use notify.send with a target, or tea.log in Lua",
}

// passes are actions that only end a branch or return the state.
var passes = []string{"core.return", "return", "core.noop", "noop"}

// action translates the call of an action.
func (t *legacy) action(n *yaml.Node) {
	uses := get(n, "uses")
	name := str(uses)
	if name == "" {
		return
	}
	if after, ok := strings.CutPrefix(name, "actions."); ok {
		name = strings.Replace(after, "_", ".", 1)
		uses.SetString(name)
	}
	for prefix, hint := range without {
		if name == strings.TrimSuffix(prefix, ".") || strings.HasSuffix(prefix, ".") && strings.HasPrefix(name, prefix) {
			t.passThrough(n, quoted(name)+" has no counterpart; "+hint)
			return
		}
	}
	with := get(n, "with")
	for _, pass := range passes {
		if name == pass {
			t.passThrough(n, quoted(name)+" is a node without a body, and a `goto` to `__end__` if the run should end")
			return
		}
	}
	switch name {
	case "state.set", "template":
		t.assign(n, uses)
	case "lua.eval":
		code := get(with, "code")
		if code == nil {
			code = scalar("")
		}
		take(n, "with")
		take(n, "uses")
		set(n, "run", code)
		t.add(decide, uses, "the Lua of `lua.eval` is the node's own code: check the names that it reads (`state` is the state)")
	case "http.get", "http.post":
		t.httpBody(n, uses)
	default:
		t.renamed(n, uses)
	}
}

// assign makes a node set keys of the state.
func (t *legacy) assign(n, uses *yaml.Node) {
	name, with, update := str(uses), get(n, "with"), mapping()
	if name == "template" {
		key := text(n, "output")
		if key == "" {
			key = text(n, "name")
		}
		set(update, key, scalar(text(with, "template")))
	} else if with != nil && with.Kind == yaml.MappingNode {
		update = with
		if values := get(with, "values"); values != nil && len(with.Content) == 2 && values.Kind == yaml.MappingNode {
			update = values
		}
	}
	t.store(n, update)
	t.add(translated, uses, "`%s` is the `output` of data.merge", name)
}

// renamed translates an action with another name.
func (t *legacy) renamed(n, uses *yaml.Node) {
	name, with := str(uses), get(n, "with")
	if r, ok := renamed[name]; ok {
		uses.SetString(r.name)
		for from, to := range r.keys {
			rename(with, from, to)
		}
		if r.note != "" {
			t.add(decide, uses, "`%s` is `%s`; %s", name, r.name, r.note)
		} else {
			t.add(translated, uses, "`%s` is `%s`", name, r.name)
		}
		name = r.name
	}
	if strings.HasPrefix(name, "llm.") {
		t.model(n, with)
	}
}

// modelParams are the parameters of llm.call and llm.tools.
var modelParams = []string{
	"provider", "model", "api_base", "api_key", "api_version", "deployment", "headers", "timeout_seconds", "max_retries", "extra", "fallbacks", "prompt", "system",
	"messages", "temperature", "top_p", "max_tokens", "stop", "seed", "schema", "response_format", "tools", "tool_choice", "stream", "max_tool_rounds",
}

// httpBody makes the result of a request its body.
func (t *legacy) httpBody(n, uses *yaml.Node) {
	const body = "{{ result.body }}"
	switch output := get(n, "output"); {
	case output == nil:
		set(n, "output", mapping(text(n, "name"), body))
		t.add(decide, uses, "the body of the answer is in `state.%s`; it was merged into the state before if it was an object", text(n, "name"))
	case output.Kind == yaml.ScalarNode:
		set(n, "output", mapping(str(output), body))
		t.add(translated, uses, "the body of the answer is stored, not the whole result")
	default:
		for i := 1; i < len(output.Content); i += 2 {
			v := output.Content[i]
			v.Value = strings.ReplaceAll(v.Value, "result", "result.body")
		}
	}
}

// model translates the provider of a call of a model.
func (t *legacy) model(n, with *yaml.Node) {
	provider := get(with, "provider")
	switch str(provider) {
	case "auto":
		take(with, "provider")
		t.add(decide, provider, "`provider: auto` is gone: name a provider in settings.llm, or a model as PROVIDER/MODEL")
	case "litellm", "local":
		provider.SetString("openai")
		t.add(decide, provider, "the provider is a server with the API of OpenAI: set `api_base`")
	case "shell":
		t.shell(n, with)
	}
	rename(with, "timeout", "timeout_seconds")
	for _, key := range keys(with) {
		if !slices.Contains(modelParams, key) {
			t.add(missing, take(with, key), "the parameter `%s` of %s", key, text(n, "uses"))
		}
	}
}

// shell makes the program of a shell provider one of settings.llm.commands.
func (t *legacy) shell(n, with *yaml.Node) {
	name := str(take(with, "shell_provider"))
	if name == "" {
		name = "claude"
	}
	provider := get(get(get(t.root, "settings"), "shell_providers"), name)
	argv := sequence(name)
	if command := text(provider, "command"); command != "" {
		argv = sequence(command)
	}
	argv.Content = append(argv.Content, items(get(provider, "args"))...)
	if t.commands == nil {
		t.commands = mapping()
	}
	set(t.commands, name, mapping("argv", argv))
	if model := take(with, "model"); model != nil {
		t.add(missing, model, "the model of a program: add it to `settings.llm.commands.%s.argv`", name)
	}
	get(with, "provider").SetString("command")
	set(with, "model", scalar(name))
	if get(with, "prompt") == nil && get(with, "messages") == nil {
		rename(with, "user", "prompt")
	}
	if timeout := get(provider, "timeout"); timeout != nil && get(with, "timeout") == nil {
		set(with, "timeout_seconds", timeout)
	}
	t.add(decide, n, "`provider: shell` is `provider: command`: check the program in `settings.llm.commands.%s`, and give it what it needs in `env`", name)
}
