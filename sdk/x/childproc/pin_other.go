//go:build !linux

package childproc

// Pin does nothing: only Linux can limit another process.
func Pin(int, int) error { return nil }
