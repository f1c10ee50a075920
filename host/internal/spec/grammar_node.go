package spec

import (
	"slices"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
)

// fillNode sets the keys of a node and of its variants by type. A step is a node
// without routing.
func fillNode(g *grammar, s *section, routing bool) {
	common := slices.Concat(nameKeys(routing), commonKeys(g))
	if routing {
		common = slices.Concat(common, routingKeys(g))
	} else {
		common = append(common, &key{name: "on_error", shape: oneOf(string(OnErrorStop), string(OnErrorContinue)), doc: "Effect of a failure after the retries."})
	}
	s.doc = "A node with at most one body: uses, run, steps or subgraph. Without one it passes the state through."
	if !routing {
		s.doc = "One step of a steps list: a body without routing."
	}
	s.inlineParams = true
	s.keys = slices.Concat(common, fanInKeys(routing, false), bodyKeys(g))
	s.variants = map[string]*section{
		typeLoop: {
			title: s.title + " of type " + typeLoop, doc: "Runs its body as long as the condition is true.", named: true,
			keys: slices.Concat(common, fanInKeys(routing, false), loopKeys(g)),
		},
		typeMap: {
			title: s.title + " of type " + typeMap, doc: "Runs one body for each item of a list, concurrently: one of action, steps and subgraph.", named: true,
			keys: slices.Concat(common, fanInKeys(routing, true), mapKeys(g)),
		},
	}
}

func nameKeys(required bool) []*key {
	return []*key{{name: "name", aliases: []string{"id"}, shape: str(), required: required, doc: "Name, unique in its list."}}
}

func commonKeys(g *grammar) []*key {
	return []*key{
		{name: "type", shape: oneOf(typeLoop, typeMap), code: diagcode.UnknownNodeType, doc: "Kind of a node that repeats its body."},
		{name: "description", use: asEither, shape: str(), doc: "What it does."},
		{name: "metadata", use: asEither, shape: anyMapping(), doc: "Anything, for tools."},
		{name: "if", shape: written(), doc: "Skips the node when false."},
		{name: "retry", shape: object(g.retry), doc: "Retry policy for failures."},
		{name: "effects", use: asEither, shape: oneOf("once"), doc: "once: a call of the node is not repeated if it is unknown whether it had its effect.", fallback: "as the manifest of the action says"},
		{name: "on_unknown", use: asEither, shape: oneOf(string(OnUnknownFail), string(OnUnknownAsk), string(OnUnknownRepeat), string(OnUnknownVerify)), fallback: string(OnUnknownFail), doc: "What follows a call with effects: once whose outcome is unknown."},
		{name: "verify", use: asEither, shape: object(g.verify), doc: "Finds out for on_unknown: verify whether the effect happened."},
		{name: "timeout_seconds", use: asEither, shape: seconds(), doc: "Timeout of one attempt."},
		{name: "output", aliases: []string{"store_as"}, shape: str().or(anyMapping()), doc: "Where the result goes: a state key, or a mapping key: \"{{ result.field }}\".", fallback: "an object merges into the state, another value is stored under the node's name"},
	}
}

func routingKeys(g *grammar) []*key {
	return []*key{
		{name: "goto", shape: str().or(listOf(object(g.rule)).nonEmpty()), doc: "The next node, or a list of rules."},
		{name: "fallback", shape: str(), doc: "Node that runs instead of this one after a failure."},
		{name: "on_error", shape: oneOf(string(OnErrorStop), string(OnErrorContinue), string(OnErrorFallback)), doc: "Effect of a failure after the retries.", fallback: "as in error_policy"},
		{name: "interrupt", shape: oneOf("before", "after"), doc: "Stops the run before or after the node."},
		{name: "parallel", shape: object(g.parallel), doc: "How the branches of a fan-out from here run."},
	}
}

// fanInKeys is fan_in: true for a node; a map can instead name the node that gets
// its results.
func fanInKeys(routing, isMap bool) []*key {
	switch {
	case isMap && routing:
		return []*key{{name: "fan_in", shape: boolean().or(str()), doc: "Node that gets the results; true marks this node as the end of parallel branches.", fallback: "the next node if it has fan_in: true"}}
	case routing:
		return []*key{{name: "fan_in", shape: boolean(), doc: "Marks the node as the end of parallel branches."}}
	}
	return nil
}

func callKeys() []*key {
	return []*key{
		{name: "uses", aliases: []string{"action"}, shape: str(), doc: "Action to call, as namespace.action."},
		{name: "with", aliases: []string{"config", "params"}, shape: anyMapping(), doc: "Parameters of the action. With action: and without with:, keys that are not node keys are the parameters, and so are description, metadata, timeout_seconds, effects, on_unknown and verify if the action has a parameter of this name."},
	}
}

func bodyKeys(g *grammar) []*key {
	return append(callKeys(),
		&key{name: "run", aliases: []string{"script", "lua"}, shape: str(), doc: "Lua code; the table it returns merges into the state."},
		languageKey(),
		&key{name: "steps", shape: listOf(object(g.step)).nonEmpty(), doc: "Bodies run in order on one working copy of the state."},
		&key{name: "subgraph", shape: str(), doc: "Another workflow file, relative to this one."},
		&key{name: "input", use: asParam, shape: anyMapping(), doc: "Input of the subgraph."},
	)
}

func loopKeys(g *grammar) []*key {
	return []*key{
		{name: "condition", shape: written(), required: true, doc: "The loop continues as long as it is true."},
		{name: "max_iterations", shape: integer(minIterations, maxIterations), fallback: "1000", doc: "Bound on the iterations; reaching it is an error."},
		{name: "on_max", shape: oneOf("stop"), doc: "stop ends the loop at the maximum instead of failing."},
		{name: "body", shape: g.nodes(), required: true, doc: "Nodes to repeat."},
	}
}

func mapKeys(g *grammar) []*key {
	return []*key{
		{name: "items", shape: written().or(listOf(anything())), required: true, doc: "The list, usually a template."},
		{name: "item_var", shape: str(), fallback: "item", doc: "Name of the item in templates, state and Lua."},
		{name: "index_var", shape: str(), fallback: "index", doc: "Name of the index, from 0."},
		{name: "max_concurrency", shape: integer(1), doc: "Maximum number of items that run concurrently. Default: the limit of parallel or config, otherwise 64."},
		{name: "fail_fast", shape: boolean(), fallback: "false", doc: "The first failed branch ends the map."},
		{name: "action", shape: object(g.call), doc: "Action to call for each item."},
		{name: "steps", shape: listOf(object(g.step)).nonEmpty(), doc: "Bodies to run for each item."},
		{name: "subgraph", shape: str(), doc: "Workflow to run for each item."},
		{name: "input", shape: anyMapping(), doc: "Input of the subgraph."},
	}
}

func callSection() *section {
	keys := append(callKeys(), &key{name: "output", aliases: []string{"store_as"}, shape: str().or(anyMapping()), doc: "Where the result goes in the branch's state."})
	keys[0].required = true
	return &section{title: "action of a map", doc: "The call that a map makes for each item.", keys: keys, inlineParams: true}
}

func verifySection() *section {
	keys := append(callKeys(), &key{name: "if", shape: written(), required: true, doc: "True if the effect happened; result is that of the call."})
	keys[0].required = true
	return &section{title: "verify", doc: "A call that changes nothing, and a condition on its result.", keys: keys}
}
