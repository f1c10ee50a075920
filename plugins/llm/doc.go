// Package llm is the bundle of actions that ask language models: llm.call,
// llm.stream, llm.tools and embedding.create.
//
// Start with [Bundle]; each action is a method of [Client], which is made once
// per set of settings. A call goes from the action (call.go, tools.go,
// embed.go) through an inquiry, which knows the server, counts and measures
// (inquiry.go), to a provider below internal/.
package llm
