// Package openai implements the chat completions protocol of OpenAI, which many
// servers understand in many dialects, and Azure's variant of it. Requests
// follow the standard; answers are read as real servers send them. The dialects
// are listed as tables in the tests.
//
// Start with [New] and [NewAzure].
package openai
