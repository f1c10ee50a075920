// Package tokens counts tokens as cl100k_base or o200k_base does, and cuts texts to a
// number of tokens between paragraphs, sentences or words. Start with [Count], [Cut]
// and [Load]. The vocabulary of cl100k_base, 17 MB of memory, is loaded by the first call.
package tokens
