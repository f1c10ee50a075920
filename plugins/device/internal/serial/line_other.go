//go:build !linux

package serial

import lib "go.bug.st/serial"

// ports returns the serial ports.
func ports() ([]Found, error) {
	paths, err := lib.GetPortsList()
	found := []Found{}
	for _, path := range paths {
		found = append(found, Found{Path: path})
	}
	return found, err
}
