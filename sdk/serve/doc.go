// Package serve turns a bundle into a plugin: a binary called
// tea-plugin-NAME that a tea host starts and calls.
//
// Start with [Main], which is all that a plugin's main function needs:
//
//	func main() { serve.Main(greet.Bundle()) }
//
// It serves the protocol (proto/tea/plugin/v1), opens instances of the bundle,
// turns a handler's panic into an error, sends log/slog records to the host,
// and ends the process when the host has ended.
package serve
