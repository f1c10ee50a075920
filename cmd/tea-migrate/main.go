// Command tea-migrate is tea with the command migrate, which writes workflows from those
// of other systems. tea runs it for `tea migrate`.
package main

import (
	"os"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/tea-migrate/internal/migrate"
)

// release and commit are set by scripts/build.
var release, commit string

func main() {
	os.Exit(teacmd.Main(teacmd.Options{Release: release, Commit: commit, Commands: []teacmd.Command{migrate.Command()}}))
}
