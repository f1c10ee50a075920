// Package ollamatest runs a real Ollama server with models whose answers are known,
// for tests. scripts/ollama installs the server, and can also start one by hand.
//
// Start with [Find] and [Start].
package ollamatest
