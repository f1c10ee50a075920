// Package examples holds workflows that run. Each folder shows one family of
// features; gateway and research are whole agents. The tests of this package run
// every command of every README in a copy of its folder, as a reader would, and
// compare what comes out.
package examples
