// Package statedir finds the directory where a plugin keeps its state. Start with [Path].
package statedir

import (
	"os"
	"path/filepath"
)

// Variable is the environment variable with the parent directory. A bundle lists it in Env.
const Variable = "XDG_STATE_HOME"

// Path returns the state directory of a plugin: the directory in its settings, or tea/NAME
// in the state directory of the user. It does not create the directory.
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
