// Package wire is the host's side of the plugin protocol: it calls a plugin
// over a connection that the host has made. It is for hosts (and for
// package teatest); plugins use package serve.
//
// Start with [Connect]. The package knows nothing of processes: who starts
// the plugin, watches and restarts it is the host's task. It lets
// such a supervisor see the difference between an action's error (a
// [*tea.Error]) and a broken plugin (a [*BrokenError]).
package wire
