// Package anthropic implements Anthropic's Messages API.
//
// Start with [New].
package anthropic
