//go:build !linux

package memory

import (
	"io"
	"os"

	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// writeWhole writes a file atomically.
func writeWhole(root *os.Root, name string, write func(io.Writer) error) error {
	return atomicfile.WriteIn(root, name, 0o600, write)
}
