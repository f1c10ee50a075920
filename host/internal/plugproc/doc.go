// Package plugproc runs action plugins as processes: it finds them, reads
// their stored manifests, starts one when its first action is needed,
// watches it, turns its death into typed errors, starts it again, and sees
// that no process outlives the host. Nothing else in the host imports
// go-plugin.
//
// Start with [Discover]. A [Set] holds the plugins that were found; [Set.Open]
// returns an [Instance] for one set of settings; [Set.Close] ends everything.
//
// Inside, a supervisor represents one plugin and holds its current
// generation: a process and the instances configured in it. A call ends on
// the generation that it began on. A launcher makes processes; what is special
// about them (a clean environment, no stdin, a process group, the
// parent-death signal, the socket's directory) is all in launcher, runner and
// rundir. Stored manifests are in manifest, trusted directories in trust. The package needs a Unix system.
package plugproc
