// Package responses implements OpenAI's Responses API.
//
// Start with [New].
package responses
