// Package examples holds workflows that run. Each folder shows one family of features; gateway and research are
// complete agents. The tests of this package run every command of every README in a copy of its folder and compare the
// output.
package examples
