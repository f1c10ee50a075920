//go:build !unix

package chromium

import (
	"os"
	"os/exec"
)

// setAttributes changes nothing: the browser ends when its pipe is closed.
func setAttributes(*exec.Cmd) {}

func killGroup(int) error { return nil }

// lock reports that a file is in use, so that no directory is taken for one that
// was left behind.
func lock(*os.File) bool { return false }
