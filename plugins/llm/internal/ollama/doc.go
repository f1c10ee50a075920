// Package ollama implements Ollama's native protocol, which offers more than its
// OpenAI-compatible one: thinking, tool arguments as objects, options such as
// num_ctx, and streams of JSON lines.
//
// Start with [New].
package ollama
