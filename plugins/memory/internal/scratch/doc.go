// Package scratch creates folders in the directory for temporary files. They do
// not outlive their process, however it ends. Start with [Folder].
package scratch
