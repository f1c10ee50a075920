// Package teacmd is the command line of tea, as a library: a program of three
// lines that calls [Main] is tea, with the bundles that it links in. It turns
// flags into calls of package host and shows the results; it has no workflow
// logic.
//
// Start with [commands]: one struct per command. What the commands that run
// workflows share is in execute.go, the exit codes are in exit.go.
package teacmd
