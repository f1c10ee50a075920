// Package childproc ends and limits the processes that a host or a plugin starts.
// [StartGuard] ends them with their owner, [Group] makes them a process group, [Pin]
// limits their processors.
package childproc
