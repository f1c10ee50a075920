// Package pb has the generated code of the plugin protocol and the converters
// between it and package tea, named FromX (to the wire) and ToX (from the wire).
// scripts/proto generates the code.
package pb
