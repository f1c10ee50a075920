package serial

import (
	"os"
	"path/filepath"
	"strings"
)

// ports returns the serial ports that have hardware. The library would open each ttyS
// port to find out, and change its mode.
func ports() ([]Found, error) {
	links, err := filepath.Glob("/sys/class/tty/*/device/driver")
	if err != nil {
		return nil, err
	}
	found := []Found{}
	for _, link := range links {
		class := filepath.Dir(filepath.Dir(link))
		if kind, err := os.ReadFile(filepath.Join(class, "type")); err == nil && strings.TrimSpace(string(kind)) == "0" {
			continue // a driver that has found no hardware
		}
		f := Found{Path: "/dev/" + filepath.Base(class)}
		if driver, err := os.Readlink(link); err == nil {
			f.Driver = filepath.Base(driver)
		}
		found = append(found, f)
	}
	names, _ := filepath.Glob("/dev/serial/by-id/*") // a fixed pattern
	for _, name := range names {
		to, err := filepath.EvalSymlinks(name)
		for i := range found {
			if err == nil && found[i].Path == to {
				found[i].ID = name
			}
		}
	}
	return found, nil
}
