// Package openai implements OpenAI's chat completions protocol, which many servers
// support in many dialects, and Azure's variant of it. Requests follow the standard;
// answers are read as real servers send them. The tests list the dialects in tables.
//
// Start with [New] and [NewAzure].
package openai
