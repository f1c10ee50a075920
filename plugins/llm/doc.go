// Package llm is the bundle of actions that call language models: llm.call,
// llm.stream, llm.tools, agent.run and embedding.create.
//
// Start with [Bundle]; each action is a method of [Client], which is created once
// per set of settings. An action sends its requests through an exchange
// (exchange.go), which selects the server, counts tokens and cost, and falls back.
// llm.tools and agent.run share the loop in conversation.go; the requests of agent.run
// are calls of llm.call. The protocols of the servers are in packages below internal/.
package llm
