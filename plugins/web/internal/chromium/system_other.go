//go:build !unix

package chromium

import "os/exec"

// setAttributes changes nothing: the browser ends when its pipe is closed.
func setAttributes(*exec.Cmd) {}

func killGroup(int) error { return nil }
