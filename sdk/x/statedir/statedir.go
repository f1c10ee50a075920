// Package statedir finds the directory where a plugin keeps its state. Start with [Path].
package statedir

import (
	"os"
	"path/filepath"
)

// Variable is the variable of the environment with the parent directory, which a bundle
// lists in Env.
const Variable = "XDG_STATE_HOME"

// Path returns the directory for the state of a plugin: the one of its settings, or
// tea/NAME in the state directory of the user. It does not create it.
func Path(setting, name string) (string, error) {
	if setting != "" {
		return setting, nil
	}
	if dir := os.Getenv(Variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tea", name), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "tea", name), err
}
