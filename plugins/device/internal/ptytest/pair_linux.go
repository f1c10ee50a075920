package ptytest

import (
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Pair returns the names of two connected terminals. Both are open until the test ends.
func Pair(t testing.TB) (a, b string) {
	t.Helper()
	first, a := Line(t)
	second, b := Line(t)
	go func() { _, _ = io.Copy(first, second) }()
	go func() { _, _ = io.Copy(second, first) }()
	return a, b
}

// Line returns the controlling end of a new terminal, and the name of the other end, which
// is open until the test ends. Closing the controlling end is a hang-up.
func Line(t testing.TB) (*os.File, string) {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { _ = control.Close() })
	raw, err := control.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	if err := raw.Control(func(fd uintptr) {
		if number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err == nil {
			err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		}
	}); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("/dev/pts/%d", number)
	line, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = line.Close() }) // keeps the terminal alive between two openings
	setRaw(t, line)
	return control, name
}

// setRaw turns off the terminal's echo and processing of input.
func setRaw(t testing.TB, line *os.File) {
	t.Helper()
	attributes, err := unix.IoctlGetTermios(int(line.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	attributes.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG
	attributes.Iflag &^= unix.ICRNL | unix.IXON
	attributes.Oflag &^= unix.OPOST
	if err := unix.IoctlSetTermios(int(line.Fd()), unix.TCSETS, attributes); err != nil {
		t.Fatal(err)
	}
}
