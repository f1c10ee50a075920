// Package testsite is a web site for tests: different pages whose main text is known,
// and an HTTP server that can also misbehave as servers do. Start with [Pages] and
// [Handler].
package testsite
