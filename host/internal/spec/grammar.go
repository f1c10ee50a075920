package spec

import (
	"maps"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
)

// Types of nodes.
const (
	typeLoop = "while_loop"
	typeMap  = "dynamic_parallel"
)

// Limits of a loop.
const (
	minIterations = 1
	maxIterations = 1000
)

// grammar has every section of the file format. The checker, the JSON Schema and
// the reference use it.
type grammar struct {
	workflow, schemaKey, imports, node, step, call, verify, rule, edge *section
	config, parallel, breaker, retry, errorPolicy, budget              *section
	queue                                                              *section
	serve, dayBudget, trigger, serveFile                               *section
	poll, stream, onFailure                                            *section
}

// theGrammar is built on first use and never changes.
var theGrammar = sync.OnceValue(newGrammar)

// sections lists every section in the order of the reference.
func (g *grammar) sections() []*section {
	list := []*section{g.workflow, g.schemaKey, g.imports, g.node}
	list = append(list, variantsOf(g.node)...)
	list = append(list, g.step)
	list = append(list, variantsOf(g.step)...)
	return append(list, g.call, g.verify, g.rule, g.edge, g.config, g.parallel, g.breaker, g.retry, g.errorPolicy, g.budget, g.queue, g.serve, g.trigger, g.poll, g.stream, g.onFailure, g.dayBudget, g.serveFile)
}

func variantsOf(s *section) []*section {
	var list []*section
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(s.variants))) {
		list = append(list, s.variants[name])
	}
	return list
}

func newGrammar() *grammar {
	g := &grammar{}
	g.retry = retrySection()
	g.breaker = breakerSection()
	g.parallel = parallelSection(g)
	g.errorPolicy = errorPolicySection(g)
	g.budget = budgetSection()
	g.queue = queueSection()
	g.poll, g.stream, g.onFailure = pollSection(), streamSection(), onFailureSection()
	g.trigger, g.dayBudget = triggerSection(g), dayBudgetSection()
	g.serve = serveSection(g)
	g.serveFile = serveFileSection(g)
	g.config = configSection(g)
	g.schemaKey = schemaKeySection()
	g.imports = importSection()
	g.rule = ruleSection()
	g.call, g.verify = callSection(), verifySection()
	g.node = &section{title: "node", named: true}
	g.step = &section{title: "step", named: true}
	fillNode(g, g.node, true)
	fillNode(g, g.step, false)
	g.edge = edgeSection()
	g.workflow = workflowSection(g)
	for _, s := range g.sections() {
		s.index = make(map[string]*key, len(s.keys))
		for _, k := range s.keys {
			for _, spelling := range k.spellings() {
				s.index[spelling] = k
			}
		}
	}
	return g
}

// nodes returns the shape of a list of nodes, or of a mapping name -> node.
func (g *grammar) nodes() *shape {
	return listOf(object(g.node)).nonEmpty().or(entriesOf(object(g.node)))
}

func workflowSection(g *grammar) *section {
	return &section{title: "workflow", doc: "The top level of the file.", keys: []*key{
		{name: "name", shape: written(), doc: "Name of the workflow.", fallback: "the file's base name"},
		{name: "description", shape: str(), doc: "What the workflow does."},
		{name: "version", shape: written(), doc: "Version of the workflow."},
		{name: "state_schema", shape: entriesOf(oneOf(typeNames()...).or(object(g.schemaKey))), doc: "The keys of the state and their types, enforced on the input and on each node's update."},
		{name: "initial_state", shape: anyMapping(), doc: "Defaults of the state; the caller's input wins per key."},
		{name: "variables", shape: anyMapping(), doc: "Constants for templates and Lua."},
		{name: "settings", shape: anyMapping(), doc: "Settings per plugin or subsystem; ${VAR} and ${VAR:-default} are expanded here, $${ is a literal ${."},
		{name: "imports", shape: listOf(object(g.imports)), doc: "Lua modules, builtin sets and plugins that the workflow uses."},
		{name: "nodes", shape: g.nodes(), required: true, doc: "The nodes: a list, or a mapping name -> node in the order written."},
		{name: "edges", shape: listOf(object(g.edge)), doc: "The edges. A node with neither goto nor edge continues with the next one in the list."},
		{name: "config", shape: object(g.config), doc: "How the workflow runs."},
		{name: "error_policy", shape: object(g.errorPolicy), doc: "Effect of a failure; the default of every node."},
		{name: "budget", shape: object(g.budget), doc: "Limits for one run; a run that reaches one stops with a checkpoint and exit code 4."},
		{name: "queues", shape: entriesOf(str().or(object(g.queue))), doc: "Task queues of actions on Temporal: the name of an action, NAME.* for a bundle or namespace, or *, and the queue of the workers that execute it."},
		{name: "serve", shape: object(g.serve), doc: "When `tea serve` starts runs, and how many."},
	}}
}

func schemaKeySection() *section {
	return &section{title: "state_schema entry", doc: "The long form of a state key.", keys: []*key{
		{name: "type", shape: oneOf(typeNames()...), fallback: "any", doc: "Type of the value; float accepts integers too."},
		{name: "default", shape: anything(), doc: "Value if neither the input nor initial_state has one."},
		{name: "required", shape: boolean(), fallback: "false", doc: "The input must have the key."},
		{name: "reducer", shape: oneOf(reducerNames()...), doc: "How an update combines with the current value; without a reducer it replaces it."},
		{name: "description", shape: str(), doc: "What the key is for."},
	}}
}

func importSection() *section {
	return &section{title: "import", doc: "One import: exactly one of path, builtin and plugin.", keys: []*key{
		{name: "path", shape: str(), doc: "A Lua module, relative to this file."},
		{name: "builtin", shape: str(), doc: "A set of actions that ships with tea."},
		{name: "plugin", shape: str(), doc: "A plugin, by name or as name@version."},
		{name: "version", shape: written(), doc: "Version constraint of a plugin, such as \">=1.2\"."},
		{name: "namespace", shape: str(), doc: "First part of the names of the actions."},
	}}
}

func ruleSection() *section {
	return &section{title: "goto rule", doc: "One rule of a goto list; the first whose condition is true applies.", keys: []*key{
		{name: "if", shape: written(), doc: "Condition; without one the rule always applies."},
		{name: "to", shape: str(), required: true, doc: "Node to go to, or END."},
	}}
}

func edgeSection() *section {
	return &section{title: "edge", doc: "One edge, or several with one source.", keys: []*key{
		{name: "from", shape: str(), required: true, doc: "Source node, or START."},
		{name: "to", shape: str().or(listOf(str()).nonEmpty()), doc: "Target node, or END; a list is a fan-out."},
		{name: "when", shape: written(), doc: "Condition that guards the edge; without one it is the default."},
		{name: "condition", shape: written(), doc: "Lua code that returns the name of a target."},
		{name: "targets", shape: entriesOf(str()).nonEmpty(), doc: "Result of condition -> node."},
		{name: "default", shape: str(), doc: "Target if condition returns nil."},
		{name: "type", shape: oneOf("parallel"), doc: "parallel makes the edge a branch of a fan-out."},
		{name: "parallel", shape: listOf(str()).nonEmpty(), doc: "Target nodes of a fan-out."},
		{name: "fan_in", shape: str(), doc: "Node at which the branches join.", fallback: "the nearest node that every branch reaches"},
	}}
}

func configSection(g *grammar) *section {
	return &section{title: "config", doc: "How the workflow runs.", keys: []*key{
		{name: "interrupt_before", shape: listOf(str()), doc: "Nodes to stop before."},
		{name: "interrupt_after", shape: listOf(str()), doc: "Nodes to stop after."},
		{name: "max_steps", shape: integer(1), fallback: "1000", doc: "Maximum number of steps of a run, against endless loops. Each iteration of a loop and each item of a map has its own count."},
		{name: "max_items", shape: integer(1), fallback: "100000", doc: "Maximum number of items of a map."},
		{name: "timeout_seconds", shape: seconds(), doc: "Timeout of the whole run."},
		{name: "max_concurrency", shape: integer(1), doc: "Maximum number of branches that run concurrently. Default: 64 for the items of a map, otherwise unlimited."},
		{name: "parallel", shape: object(g.parallel), doc: "How branches run."},
	}}
}

func budgetSection() *section {
	return &section{title: "budget", doc: "Limits for one run.", keys: []*key{
		{name: "steps", shape: integer(1), doc: "Finished nodes, including those of loops and maps."},
		{name: "seconds", shape: seconds().requirePositive(), doc: "Time."},
		{name: "tokens", shape: integer(1, 1<<53), doc: "Tokens of all requests to models, including failed and repeated ones."},
		{name: "usd", shape: number(0).requirePositive(), doc: "Cost of these requests."},
		{name: "tool_calls", shape: integer(1), doc: "Calls that Lua code (tea.action) and actions make."},
	}}
}

func languageKey() *key {
	return &key{name: "language", shape: oneOf("lua"), fallback: "lua", code: diagcode.UnknownLanguage, doc: "Language of run; Lua is the only one."}
}

func retryKeys() []*key {
	return []*key{
		{name: "max_retries", shape: integer(0), doc: "Attempts after the first."},
		{name: "backoff_base_ms", shape: milliseconds(), doc: "First wait."},
		{name: "base_delay", shape: seconds(), doc: "First wait, in seconds."},
		{name: "backoff_max_ms", shape: milliseconds(), doc: "Longest wait."},
		{name: "max_delay", shape: seconds(), doc: "Longest wait, in seconds."},
		{name: "backoff_multiplier", shape: number(1), doc: "Factor by which the wait grows."},
		{name: "jitter", shape: boolean().or(number(0, 1)), doc: "Random share of the wait; true is 0.5."},
		{name: "retry_after_max_seconds", shape: seconds(), fallback: "60", doc: "Longest wait that a failure can ask for, such as a server's Retry-After. A failure that asks for more is not retried."},
		{name: "timeout_seconds", shape: seconds(), doc: "Timeout for all attempts together, including the waits between them. timeout_seconds of a node or of parallel limits one attempt."},
		{name: "retry_on", shape: listOf(str()), doc: "Error types to retry.", fallback: "those marked retryable"},
	}
}

func retrySection() *section {
	return &section{title: "retry", doc: "Retry policy for failed calls.", keys: retryKeys()}
}

func errorPolicySection(*grammar) *section {
	return &section{title: "error_policy", doc: "Effect of a failure; the default of every node.", keys: append(retryKeys(),
		&key{
			name: "on_failure", shape: oneOf(string(OnErrorStop), string(OnErrorCheckpoint), string(OnErrorContinue), string(OnErrorFallback)), fallback: "stop",
			doc: "Effect after the retries; checkpoint_and_exit is stop with a guaranteed checkpoint.",
		})}
}

func parallelSection(g *grammar) *section {
	return &section{title: "parallel", doc: "How the branches of a fan-out run.", keys: []*key{
		{name: "timeout_seconds", shape: seconds(), doc: "Timeout of each branch; a branch that exceeds it is a result with timeout: true."},
		{name: "fail_fast", shape: boolean(), fallback: "false", doc: "The first failed branch ends the run."},
		{name: "max_concurrency", shape: integer(1), doc: "Maximum number of branches that run concurrently. Default: 64 for the items of a map, otherwise unlimited."},
		{name: "retry", shape: object(g.retry), doc: "Repeats a whole branch."},
		{name: "circuit_breaker", shape: object(g.breaker), doc: "Stops calling a branch that keeps failing."},
	}}
}

func breakerSection() *section {
	return &section{title: "circuit_breaker", doc: "A circuit breaker per branch: closed, open, half-open.", keys: []*key{
		{name: "failure_threshold", shape: integer(1), doc: "Failures in a row that open it."},
		{name: "reset_timeout", shape: seconds(), doc: "Time until it is half-open."},
		{name: "half_open_max_calls", shape: integer(1), doc: "Calls let through while half-open."},
	}}
}
