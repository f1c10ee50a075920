// Package ollamatest runs a real Ollama server with models whose answers are
// known, for tests. The server is installed by scripts/ollama of the
// repository, which also starts one by hand.
//
// Start with [Find] and [Start].
package ollamatest
