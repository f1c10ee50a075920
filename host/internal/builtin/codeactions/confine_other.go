//go:build !linux

package codeactions

import (
	"os/exec"
	"time"
)

// confineChild does nothing: the deadline kills the child.
func confineChild(*exec.Cmd) {}

// confineSelf does nothing: the sandbox and the deadline are the limits.
func confineSelf(int64, time.Duration) error { return nil }
