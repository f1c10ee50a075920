// Package tokens combines the streamed tokens of a run into few lines of its event log,
// and splits the lines again. Start with [Buffer] and [Reader].
package tokens
