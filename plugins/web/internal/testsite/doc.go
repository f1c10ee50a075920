// Package testsite is a web site for tests: pages of different make whose main
// text is known, and an HTTP server that also misbehaves in the ways that
// servers do. Start with [Pages] and [Handler].
package testsite
