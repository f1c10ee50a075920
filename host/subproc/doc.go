// Package subproc runs action plugins as separate processes for a host. It finds them,
// reads their stored manifests, starts a plugin when its first action is needed,
// watches it, reports its death as a typed error, restarts it, and ensures that no
// process outlives the host. It is the only package of the host that imports go-plugin;
// a host that does not import it links no gRPC.
//
// Start with [Discover]. [Plugins] are the discovered plugins; [Plugins.Open] returns
// an instance for one set of settings; [Plugins.Close] ends everything.
//
// A supervisor represents one plugin and has its current generation: a process and the
// instances configured in it. A call ends on the generation on which it began; a turn
// counts the calls. [Plugins.Reload] replaces a generation by one of another executable
// (swap), if their manifests are compatible. A launcher starts processes; launcher,
// runner and rundir give them a clean environment, no stdin, a process group, the
// parent-death signal and the directory of the socket. Stored manifests are in
// manifest, trusted directories in trust. os_unix.go and os_windows.go
// have what depends on the system.
package subproc
