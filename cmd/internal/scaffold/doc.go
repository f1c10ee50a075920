// Package scaffold writes the project of a new plugin.
//
// Start with [Write]. Each folder of templates is a complete project whose
// plugin is called greeter; that word is replaced by the plugin's name. What
// projects share (the Go SDK, the protocol) is in shared.txtar.gz, which
// `go test -run Shared -update` writes from the repository.
package scaffold
