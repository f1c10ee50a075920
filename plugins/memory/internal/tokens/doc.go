// Package tokens counts a text's tokens as cl100k_base does, and cuts texts to
// a number of tokens at places where a reader would. Start with [Count] and
// [Cut]. The vocabulary, 17 MB of memory, is loaded by the first call.
package tokens
