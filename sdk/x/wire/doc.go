// Package wire is the host's side of the plugin protocol: it calls a plugin
// over an existing connection. It is for hosts (and for package teatest);
// plugins use package serve.
//
// Start with [Connect]. The package does not handle processes: the host starts
// the plugin, watches it and restarts it. Errors distinguish an action's error
// (a [*tea.Error]) from a broken plugin (a [*BrokenError]).
package wire
