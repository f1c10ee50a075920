// Package scratch has folders in the directory for temporary files that do not
// outlive their process, however it ends. Start with [Folder].
package scratch
