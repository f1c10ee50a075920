// Package agentbuild builds a tea program with bundles linked in, and optionally
// with a workflow that it runs by default. It generates a module with a main
// package and compiles it with the user's Go toolchain.
//
// Start with [Build]. [ParseBundles] reads the bundles of the command line;
// module.go writes the module.
package agentbuild
