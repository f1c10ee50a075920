package subproc

import (
	"errors"
	"fmt"
	"os"

	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

const (
	runDirPrefix = "tea-plugins-"
	// socketSuffix is the length of the suffix that go-plugin adds for a socket:
	// "/plugin-dirNNNNNNNNNN/pluginNNNNNNNNNN".
	socketSuffix = 2 * (1 + len("plugin-dir") + 10)
	// maxSocket is the maximum path length of a Unix socket on all systems.
	maxSocket = 103
)

// newRunDir creates the directory of a host's sockets in the first usable one of bases.
func newRunDir(bases []string) (*filelock.Dir, error) {
	var errs []error
	for _, base := range bases {
		if len(base)+1+len(runDirPrefix)+10+socketSuffix > maxSocket {
			errs = append(errs, fmt.Errorf("%s is too long for a socket's path", base))
			continue
		}
		dir, err := filelock.MakeDir(base, runDirPrefix)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("make a directory for plugin sockets: %w", errors.Join(errs...))
}

// runBases returns the possible parents of the directory, in order of preference.
func runBases() []string {
	var bases []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		bases = append(bases, dir)
	}
	return append(bases, os.TempDir(), "/tmp")
}
