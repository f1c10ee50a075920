//go:build !linux

package chromium

import "os/exec"

// setAttributes changes nothing: the browser ends when its pipe is closed.
func setAttributes(*exec.Cmd) {}
