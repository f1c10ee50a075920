//go:build !wasm

package confine

import "syscall"

// nonBlock prevents the opening of a pipe from waiting for its other end.
const nonBlock = syscall.O_NONBLOCK
