// Package childproc ends and limits the processes that a host or a plugin starts.
// [StartGuard] is for the end of the owner, [Pin] for processors.
package childproc
