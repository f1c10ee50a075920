//go:build !wasm

package teacmd

import "syscall"

// noTerminal opens a terminal without making it the controlling one.
const noTerminal = syscall.O_NOCTTY

// execProgram replaces this program. It returns only if that fails.
func execProgram(path string, args, env []string) error { return syscall.Exec(path, args, env) }
