//go:build !linux

package serial

import (
	"context"
	"os"

	lib "go.bug.st/serial"
)

// lock does nothing: the library opens a port for exclusive use.
func lock(context.Context, string) (*os.File, error) { return nil, nil }

// ports returns the serial ports.
func ports() ([]Found, error) {
	paths, err := lib.GetPortsList()
	found := []Found{}
	for _, path := range paths {
		found = append(found, Found{Path: path})
	}
	return found, err
}
