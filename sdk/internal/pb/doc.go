// Package pb is the plugin protocol's generated code with the converters
// between it and package tea, called FromX (onto the wire) and ToX (off it).
// Make the generated files anew with scripts/proto.
package pb
