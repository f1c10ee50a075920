// Package openai speaks the chat completions protocol of OpenAI, which many
// servers understand in many dialects, and Azure's variant of it. It asks as
// the standard says and accepts what servers really answer; the oddities it
// knows stand as tables in its tests.
//
// Start with [New] and [NewAzure].
package openai
